// npm run test:faults: breaks a system of its own in every way that the promises cover, and prints what came of it.
//   npm run test:faults -- kills   only the files whose path contains this
//   FAULT_SEED=… npm run test:faults   makes the same choices again
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { endCommands } from './lib/command.mjs';
import { runJest } from './lib/jest.mjs';
import { checkMachine } from './lib/machine.mjs';
import { watchParent } from './lib/parent.mjs';
import { prepare } from './lib/prepare.mjs';
import { report, reportFailure } from './lib/progress.mjs';
import { temporaryDirectory } from './lib/temporary-directory.mjs';

const directory = temporaryDirectory('faults');
const matrixFile = join(directory.path, 'matrix.jsonl');
let leaving = false;

for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(name, () => leave(130));
watchParent(() => leave(1));

try {
  checkMachine();
  await prepare();
  const chosen = process.argv.slice(2);
  const { passed, failed } = await runJest(
    // One file at a time: the systems under test would compete for the machine, and one of them is load enough.
    ['--selectProjects', 'faults', '--runInBand', '--testPathPatterns', ...(chosen.length > 0 ? chosen : ['^(?!.*short)'])],
    { FAULT_REPORT: matrixFile },
    join(directory.path, 'report.json'),
  );
  process.stdout.write(`\n${matrix()}\n`);
  report(`${passed} passed, ${failed} failed`);
  leave(failed > 0 || passed === 0 ? 1 : 0);
} catch (error) {
  if (!leaving) reportFailure(error);
  leave(1);
}

/** A Markdown table of what the tests have reported. */
function matrix() {
  let rows;
  try {
    rows = readFileSync(matrixFile, 'utf8').trim().split('\n').map(JSON.parse);
  } catch {
    return 'No fault was injected.';
  }
  const columns = [...new Set(rows.flatMap(Object.keys))].sort((a, b) => order(a) - order(b));
  const cells = [columns, ...rows.map((row) => columns.map((column) => String(row[column] ?? '')))];
  const widths = columns.map((_, index) => Math.max(...cells.map((row) => row[index].length), 3));
  const line = (row) => `| ${row.map((cell, index) => cell.padEnd(widths[index])).join(' | ')} |`;
  return [line(cells[0]), line(widths.map((width) => '-'.repeat(width))), ...cells.slice(1).map(line)].join('\n');
}

// Names that look like numbers come first in an object, whatever the order in which they were set.
function order(column) {
  return (
    ['fault', 'asked', '200', '503', '504', 'no answer', 'other', 'lost', 'duplicated', 'unasked', 'late'].indexOf(column) + 1 ||
    99
  );
}

function leave(code) {
  if (leaving) return;
  leaving = true;
  endCommands();
  directory.remove();
  process.exit(code);
}
