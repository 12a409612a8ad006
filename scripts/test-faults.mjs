// npm run test:faults: breaks a system of its own in every way that the promises cover, and prints what came of it.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { between } from './docs/between.mjs';
import { tableOf } from './docs/table.mjs';
import { UsageError, commandLine, secondsOf } from './processes/command-line.mjs';
import { ROOT } from './checkout/project.mjs';
import { runSuite } from './checkout/suite.mjs';

const DOCUMENT = join(ROOT, 'docs/reliability.md');
const COLUMNS = [
  'fault',
  'asked',
  '200',
  '429',
  '503',
  '504',
  'no answer',
  'lost',
  'duplicated',
  'unasked',
  'late',
  'recovery (s)',
];
/** The columns that the promises are about: shown even when they are 0 everywhere. */
const COUNTED = COLUMNS.slice(1, -1);

const { parts, soakSeconds, write } = commandLine(
  {
    command: 'npm run test:faults --',
    about: 'Breaks a system of its own in every way that the promises cover, and prints what came of it.',
    words: { name: 'PART', help: 'only the files whose path contains it; without one, all but the soak' },
    options: {
      soak: { value: 'TIME', help: 'one random fault after the other until the time is over' },
      write: { help: 'writes the figures into docs/reliability.md when everything has passed' },
    },
    notes: [
      'TIME is a number with s, m or h. FAULT_SEED in the environment makes the same choices again, as a failure prints it.',
    ],
    examples: { '': 'everything, in twenty minutes', kills: 'the kills', '--soak 10m': 'ten minutes of anything' },
  },
  ({ words, values }) => {
    if (values.write && (words.length > 0 || values.soak)) throw new UsageError('--write is for the full run only.');
    return { parts: words, soakSeconds: values.soak && secondsOf('--soak', values.soak), write: values.write };
  },
);
const all = parts.length === 0 && !soakSeconds;
const files = all ? ['^(?!.*(short|soak|upgrade))'] : soakSeconds ? ['soak'] : parts;
await runSuite({
  project: 'faults',
  args: ['--testPathPatterns', ...files],
  env: soakSeconds ? { FAULT_SOAK_SECONDS: String(soakSeconds) } : {},
  after: (rows, { failed, seconds }) => {
    const matrix = matrixOf(rows);
    process.stdout.write(`\n${matrix}\n`);
    if (!write || failed > 0) return;
    const when = `${new Date().toISOString().slice(0, 10)}, ${Math.ceil(seconds / 60)} minutes`;
    writeFileSync(DOCUMENT, between('matrix', readFileSync(DOCUMENT, 'utf8'), `Last full run: ${when}.\n\n${matrix}`));
  },
});

/**
 * A Markdown table of what the tests have reported, with the sums.
 * @param {Record<string, any>[]} rows
 */
function matrixOf(rows) {
  /** @param {string} column */
  const sum = (column) => rows.reduce((all, row) => all + (row[column] ?? 0), 0);
  /** @type {Record<string, unknown>} */
  const totals = { fault: '**all**', ...Object.fromEntries(COUNTED.map((column) => [column, sum(column)])) };
  const columns = [...COLUMNS, 'figures'];
  return tableOf(columns, [...rows, totals]);
}
