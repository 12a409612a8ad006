// npm run test:compat: whether this version and another one work together. Builds the other one in a worktree and runs
// end-to-end tests with its gateway and the services of now, the reverse, and services of both. Set-up (schema, queues) is that of now, after the
// queues of the other.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { commandLine } from './processes/command-line.mjs';
import { runJest } from './checkout/jest.mjs';
import { UserError, checkMachine } from './checkout/machine.mjs';
import { runToEnd } from './checkout/run-to-end.mjs';
import { prepare } from './checkout/prepare.mjs';
import { report } from './checkout/progress.mjs';
import { LOCAL } from './checkout/project.mjs';
import { buildVersion, removeVersion } from './checkout/worktree.mjs';
import { temporaryDirectory } from './processes/temporary-directory.mjs';
import { TestServers } from './servers/test-servers.mjs';

/** The tests are those of now. Each group with the contracts that the other version must have for it: the first ones have been there always. */
const GROUPS = Object.entries({
  'users/add': [],
  'notifications/add': [],
  'notifications/get': [],
  'a service that publishes directly': [],
  'users/delete, users/get and documents/set': ['users.delete', 'users.get', 'documents.set'],
  'notifications/delete': ['notifications.delete'],
  'notifications/inbox and notifications/update': ['notifications.inbox', 'notifications.update'],
});
const WORKTREE = join(LOCAL, 'compat');

const ref = commandLine(
  {
    command: 'npm run test:compat --',
    about:
      'Runs end-to-end tests with the gateway of another version and the services of this one, the reverse, and services of both.',
    words: { name: 'VERSION', help: 'a git tag or commit', least: 1, most: 1 },
    examples: { '9bb7f93': 'with an earlier commit', 'HEAD~1': 'with the commit before this one' },
  },
  ({ words: [version] }) => version,
);
const servers = new TestServers();
const reports = temporaryDirectory('jest-reports');
await runToEnd(main, async () => {
  await servers.remove();
  reports.remove();
  await removeVersion(WORKTREE).catch(() => undefined);
});

async function main() {
  checkMachine();
  await prepare();
  await buildVersion(ref, WORKTREE);
  const settings = { ...(await servers.startRabbit(report)), ...(await servers.startPostgres()) };
  const known = GROUPS.filter(([, contracts]) =>
    contracts.every((name) => existsSync(join(WORKTREE, `libs/contracts/src/${name}.ts`))),
  );
  const names = known.map(([name]) => name);
  report(`operations that ${ref} has: ${names.join('; ')}`);
  const tests = ['--testPathPatterns', 'test/e2e/operations', '--testNamePattern', `the operations (${names.join('|')}) `];
  const failed = [];
  /** @type {[string, string[], string[]][]} */
  const combinations = [
    [`gateway of ${ref}, services of now`, ['GATEWAY'], tests],
    [`gateway of now, services of ${ref}`, ['USERS', 'NOTIFICATIONS'], tests],
    [`services of ${ref} beside those of now`, [], ['--testPathPatterns', 'test/e2e/mixed-outboxes']],
  ];
  for (const [index, [name, apps, chosen]] of combinations.entries()) {
    const others = Object.fromEntries(apps.map((app) => [`TEST_${app}_ROOT`, WORKTREE]));
    const result = await runJest(
      // One after the other: what is looked for is not how fast they start.
      ['--selectProjects', 'e2e', '--runInBand', ...chosen],
      { ...settings, ...others, TEST_EARLIER_ROOT: WORKTREE, TEST_CALLS_EXCHANGE: 'commands' },
      join(reports.path, `${index}.json`),
    );
    report(`${name}: ${result.passed} passed, ${result.failed} failed`);
    if (result.failed > 0) failed.push(name);
  }
  if (failed.length > 0)
    throw new UserError(
      `Failures with ${failed.join('; with ')}. Either what ${ref} did not do yet, or an incompatibility: look at each.`,
    );
}
