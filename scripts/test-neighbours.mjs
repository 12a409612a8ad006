// npm run test:neighbours: a tenant that does no harm, and beside it, one after the other, everything that somebody else may do to it.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROWS } from '../test/neighbours/attacks/all.mjs';
import { between } from './docs/between.mjs';
import { table } from './docs/table.mjs';
import { UsageError, commandLine, unknown, wholeNumber } from './processes/command-line.mjs';
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
  'attack',
  'why',
  'offered',
  'asked',
  'not 200',
  'add p99 (ms)',
  'get p99 (ms)',
  'as measured (ms)',
  'machine (ms)',
  'client late (ms)',
  'events p99 (ms)',
  'most memory (MiB)',
  'broker: memory, disk (MiB)',
  'recovery (s)',
  'failed',
];

const { rows, write } = commandLine(
  {
    command: 'npm run test:neighbours --',
    about: 'A tenant that does no harm, and beside it, one after the other, everything that somebody else may do to it.',
    words: { name: 'ROW', help: 'only the rows whose name is or contains it; without one, all' },
    options: {
      seconds: { value: 'N', help: 'how long each row takes: a few show which of them fail' },
      write: { help: 'writes the figures into docs/reliability.md, with the bounds that were missed' },
    },
    notes: [`Rows:\n${ROWS.map(({ name }) => `  ${name}`).join('\n')}`],
    examples: { '': 'everything, in half an hour', 'heavy stuck --seconds 8': 'two kinds of rows, in short' },
  },
  ({ words, values }) => {
    if (values.write && (words.length > 0 || values.seconds)) throw new UsageError('--write is for the full run only.');
    const seconds = values.seconds && { seconds: wholeNumber('--seconds', values.seconds, 3600) };
    return { rows: chosen(words).map((row) => ({ ...row, ...seconds })), write: values.write };
  },
);
const directory = temporaryDirectory('neighbours');
const reportFile = join(directory.path, 'rows.jsonl');
let leaving = false;

for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(name, () => interrupted());
watchParent(() => leave(1));

try {
  checkMachine();
  await prepare();
  const since = Date.now();
  const { passed, failed } = await runJest(
    ['--selectProjects', 'neighbours', '--runInBand', '--testPathPatterns', 'neighbours\\.neighbours-spec'],
    { FAULT_REPORT: reportFile, NEIGHBOUR_ROWS: JSON.stringify(rows) },
    join(directory.path, 'report.json'),
  );
  const figures = reported();
  process.stdout.write(`\n${tableOf(figures, COLUMNS)}\n`);
  report(`${passed} passed, ${failed} failed`);
  if (write) {
    const minutes = Math.ceil((Date.now() - since) / 60_000);
    const when = `${new Date().toISOString().slice(0, 10)}, ${minutes} minutes`;
    const content = `Last full run: ${when}, ${passed} rows within every bound, ${failed} not.\n\n${tableOf(figures, COLUMNS)}`;
    writeFileSync(DOCUMENT, between('neighbours', readFileSync(DOCUMENT, 'utf8'), content));
  }
  leave(failed > 0 || passed === 0 ? 1 : 0);
} catch (error) {
  if (!leaving) reportFailure(error);
  leave(1);
}

/** @param {string[]} parts of names; none means every row */
function chosen(parts) {
  const names = ROWS.map(({ name }) => name);
  /** @param {string} name @param {string} part */
  const isMeant = (name, part) => (names.includes(part) ? name === part : name.includes(part));
  const stray = parts.find((part) => !names.some((name) => isMeant(name, part)));
  if (stray !== undefined) throw unknown('row', stray, names);
  return parts.length === 0 ? ROWS : ROWS.filter(({ name }) => parts.some((part) => isMeant(name, part)));
}

function reported() {
  try {
    return readFileSync(reportFile, 'utf8')
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
  } catch {
    return []; // nothing was attacked
  }
}

/**
 * A Markdown table of what the tests have reported.
 * @param {Record<string, unknown>[]} rows
 * @param {string[]} columns
 */
function tableOf(rows, columns) {
  /** @param {unknown} attack */
  const whyOf = (attack) => ROWS.find(({ name }) => name === attack)?.why;
  return table(
    columns,
    rows.map((row) => columns.map((column) => String((column === 'why' ? whyOf(row.attack) : row[column]) ?? ''))),
  );
}

/** What was measured so far took minutes. */
function interrupted() {
  if (!leaving) process.stdout.write(`\n${tableOf(reported(), COLUMNS)}\n`);
  leave(130);
}

/** @param {number} code */
function leave(code) {
  if (leaving) return;
  leaving = true;
  endCommands();
  directory.remove();
  process.exit(code);
}
