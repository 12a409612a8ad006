// Brings the database and the broker to what this version expects; safe to repeat. Also the container's one-shot command.
import './processes/stop-at-once.mjs';
import { configurationProblems } from './checkout/configuration.mjs';
import { UsageError, aside, commandLine } from './processes/command-line.mjs';
import { buildProblem, nodeProblem } from './checkout/machine.mjs';
import { built } from './checkout/project.mjs';

const STEPS = {
  users: 'apps/users/src/tools/migrate.main.js',
  notifications: 'apps/notifications/src/tools/migrate.main.js',
  accounts: 'libs/rabbitmq-admin/src/accounts/declare-accounts.main.js',
  topology: 'libs/rabbitmq/src/topology/declare-topology.main.js',
};
/** @type {Record<string, Record<string, string>>} What each step reads. */
const CONFIGURATIONS = {
  users: { UsersMigrationConfig: 'apps/users/src/config.js' },
  notifications: { NotificationsMigrationConfig: 'apps/notifications/src/config.js' },
  accounts: { AccountsConfig: 'libs/rabbitmq/src/config.js' },
  topology: { TopologyConfig: 'libs/rabbitmq/src/config.js' },
};

const { wanted, json } = commandLine(
  {
    command: 'npm run setup --',
    about: 'Brings the database and the broker to what this version expects. Safe to repeat.',
    words: { name: 'STEP', help: 'only these; without one, all, in this order:', known: Object.keys(STEPS) },
    options: {
      upgraded: { help: 'no process of a version without lanes runs any more: removes what only those needed' },
      json: { help: 'the result as one JSON object: { steps: [{ step, ... }] }' },
    },
    notes: [
      'The servers are those of AMQP_URL, RABBITMQ_MANAGEMENT_URL and DATABASE_URL. In a container: node scripts/setup.mjs',
    ],
    examples: { '': 'everything', 'users notifications': 'the schemas of the database', '--upgraded': 'the end of an upgrade' },
  },
  ({ words, values }) => {
    if (values.upgraded && words.length > 0 && !words.includes('topology'))
      throw new UsageError('--upgraded is for the step topology.');
    return { wanted: words, json: Boolean(values.json) };
  },
);

const chosen = Object.entries(STEPS).filter(([name]) => wanted.length === 0 || wanted.includes(name));
const problems =
  nodeProblem() ??
  buildProblem(`dist/${STEPS.topology}`) ??
  // Before the first step: each would name its own problems only.
  configurationProblems(Object.assign({}, ...chosen.map(([name]) => CONFIGURATIONS[name])), process.env);
if (problems) {
  aside('error', problems, json);
  process.exit(1);
}

let program = '';
process.on('exit', (code) => {
  if (code === 1) aside('error', `Setup failed in dist/${program} (${code}).`, json);
});

// In one process: most of the time of each step would go into loading the same packages. Each reads its own options from the command line.
const steps = [];
for (const [name, path] of chosen) {
  program = path;
  const outcome = await built(program).finished;
  if (process.exitCode) process.exit();
  steps.push({ step: name, ...outcome });
}
if (json) console.log(JSON.stringify({ steps }));
