// npm run test:faults: breaks a system of its own in every way that the promises cover, and prints what came of it.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { between } from './docs/between.mjs';
import { table } from './docs/table.mjs';
import { UsageError, commandLine, secondsOf } from './processes/command-line.mjs';
import { endCommands } from './processes/command.mjs';
import { runJest } from './checkout/jest.mjs';
import { checkMachine } from './checkout/machine.mjs';
import { watchParent } from './processes/parent.mjs';
import { prepare } from './checkout/prepare.mjs';
import { report, reportFailure } from './checkout/progress.mjs';
import { ROOT } from './checkout/project.mjs';
import { temporaryDirectory } from './processes/temporary-directory.mjs';

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
/** What the promises are about: shown even when they are 0 everywhere. */
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
    examples: { '': 'everything, in a quarter of an hour', kills: 'the kills', '--soak 10m': 'ten minutes of anything' },
  },
  ({ words, values }) => {
    if (values.write && (words.length > 0 || values.soak)) throw new UsageError('--write is for the full run only.');
    return { parts: words, soakSeconds: values.soak && secondsOf('--soak', values.soak), write: values.write };
  },
);
const directory = temporaryDirectory('faults');
const matrixFile = join(directory.path, 'matrix.jsonl');
let leaving = false;

for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(name, () => leave(130));
watchParent(() => leave(1));

try {
  checkMachine();
  await prepare();
  const all = parts.length === 0 && !soakSeconds;
  const files = all ? ['^(?!.*(short|soak|upgrade))'] : soakSeconds ? ['soak'] : parts;
  const since = Date.now();
  const { passed, failed } = await runJest(
    // One file at a time: the systems under test would compete for the machine, and one of them is load enough.
    ['--selectProjects', 'faults', '--runInBand', '--testPathPatterns', ...files],
    { FAULT_REPORT: matrixFile, ...(soakSeconds && { FAULT_SOAK_SECONDS: String(soakSeconds) }) },
    join(directory.path, 'report.json'),
  );
  const matrix = matrixOf(reported());
  process.stdout.write(`\n${matrix}\n`);
  report(`${passed} passed, ${failed} failed`);
  if (write && failed === 0) {
    const minutes = Math.ceil((Date.now() - since) / 60_000);
    const when = `${new Date().toISOString().slice(0, 10)}, ${minutes} minutes`;
    writeFileSync(DOCUMENT, between('matrix', readFileSync(DOCUMENT, 'utf8'), `Last full run: ${when}.\n\n${matrix}`));
  }
  leave(failed > 0 ? 1 : 0);
} catch (error) {
  if (!leaving) reportFailure(error);
  leave(1);
}

function reported() {
  try {
    return readFileSync(matrixFile, 'utf8')
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
  } catch {
    return []; // nothing was injected
  }
}

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
  return table(
    columns,
    [...rows, totals].map((row) => columns.map((column) => String(row[column] ?? ''))),
  );
}

/** @param {number} code */
function leave(code) {
  if (leaving) return;
  leaving = true;
  endCommands();
  directory.remove();
  process.exit(code);
}
