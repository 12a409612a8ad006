// npm run test:upgrade: whether a running system of another version becomes one of this version, and back, without a failed call.
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { table } from './docs/table.mjs';
import { commandLine } from './processes/command-line.mjs';
import { endCommands } from './processes/command.mjs';
import { runJest } from './checkout/jest.mjs';
import { checkMachine } from './checkout/machine.mjs';
import { watchParent } from './processes/parent.mjs';
import { prepare } from './checkout/prepare.mjs';
import { report, reportFailure } from './checkout/progress.mjs';
import { LOCAL } from './checkout/project.mjs';
import { buildVersion, removeVersion } from './checkout/worktree.mjs';
import { temporaryDirectory } from './processes/temporary-directory.mjs';

const COLUMNS = ['step', 'seconds', 'calls', 'failed', 'longest pause (ms)', 'machine late (ms)'];
const WORKTREE = join(LOCAL, 'upgrade');

const ref = commandLine(
  {
    command: 'npm run test:upgrade --',
    about: 'Replaces every process of another version by this one under load, and goes back. No call may fail.',
    words: { name: 'VERSION', help: 'a git tag or commit', least: 1, most: 1 },
    examples: { '9bb7f93': 'from an earlier commit', HEAD: 'the procedure itself, with the same code on both sides' },
  },
  ({ words: [version] }) => version,
);
const directory = temporaryDirectory('upgrade');
const stepsFile = join(directory.path, 'steps.jsonl');
let leaving = false;

for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(name, () => void leave(130));
watchParent(() => void leave(1));

try {
  checkMachine();
  await prepare();
  await buildVersion(ref, WORKTREE);
  const { failed } = await runJest(
    ['--selectProjects', 'faults', '--runInBand', '--testPathPatterns', 'upgrade'],
    { UPGRADE_FROM_ROOT: WORKTREE, UPGRADE_REPORT: stepsFile },
    join(directory.path, 'report.json'),
  );
  process.stdout.write(`\n${tableOf(steps())}\n`);
  report(`from ${ref} to this version and back: ${failed === 0 ? 'passed' : 'failed'}`);
  await leave(failed > 0 ? 1 : 0);
} catch (error) {
  if (!leaving) reportFailure(error);
  await leave(1);
}

/** @returns {Record<string, unknown>[]} */
function steps() {
  if (!existsSync(stepsFile)) return [];
  return readFileSync(stepsFile, 'utf8')
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line));
}

/** @param {Record<string, unknown>[]} rows */
function tableOf(rows) {
  return table(
    COLUMNS,
    rows.map((row) => COLUMNS.map((column) => String(row[column] ?? ''))),
  );
}

/** @param {number} code */
async function leave(code) {
  if (leaving) return;
  leaving = true;
  endCommands();
  directory.remove();
  await removeVersion(WORKTREE).catch(() => undefined);
  process.exit(code);
}
