// npm run test:upgrade: whether a running system of another version becomes one of this version, and back, without a failed call.
import { join } from 'node:path';
import { tableOf } from './docs/table.mjs';
import { commandLine } from './processes/command-line.mjs';
import { LOCAL } from './checkout/project.mjs';
import { runSuite } from './checkout/suite.mjs';
import { buildVersion, removeVersion } from './checkout/worktree.mjs';

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
await runSuite({
  project: 'faults',
  args: ['--testPathPatterns', 'upgrade'],
  before: async () => {
    await buildVersion(ref, WORKTREE);
    return { UPGRADE_FROM_ROOT: WORKTREE };
  },
  after: (rows) => process.stdout.write(`\n${tableOf(COLUMNS, rows)}\n`),
  end: () => removeVersion(WORKTREE),
});
