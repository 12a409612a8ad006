// npm run test:security: the security tests in full, on a broker and a database of their own.
import { commandLine } from './processes/command-line.mjs';
import { report } from './checkout/progress.mjs';
import { runSuite } from './checkout/suite.mjs';
import { TestServers } from './servers/test-servers.mjs';

const IN_FULL = { SECURITY_HTTP_CASES: '70000', SECURITY_QUEUE_CASES: '30000', SECURITY_ISOLATION_RUNS: '6' };

const chosen = commandLine(
  {
    command: 'npm run test:security --',
    about: 'Runs the security tests in full, on a broker and a database of their own. Arguments of Jest choose some of them.',
    passedOn: 'Jest',
    notes: [
      `${Object.keys(IN_FULL).join(', ')} say how much of it;\nSECURITY_SEED and SECURITY_PATH repeat one case, as a failure prints them.`,
    ],
    examples: { '': 'all of it', "-t 'over HTTP'": 'the tests with these words in their names' },
  },
  ({ words }) => words,
);
/** The environment may ask for others. */
const amounts = Object.fromEntries(Object.entries(IN_FULL).map(([name, inFull]) => [name, process.env[name] || inFull]));
const servers = new TestServers();
await runSuite({
  project: 'security',
  args: chosen,
  before: async () => ({ ...(await servers.startRabbit(report)), ...(await servers.startPostgres()) }),
  env: amounts,
  after: (rows) => {
    for (const [name, value] of rows.flatMap(Object.entries)) process.stdout.write(`${String(value).padStart(8)}  ${name}\n`);
  },
  end: () => servers.remove(),
});
