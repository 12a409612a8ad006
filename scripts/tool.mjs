// npm run keys, events, copy, tenants, accounts, dead-letters, doctor: the operators' tools, on the system of the environment, else on a
// running npm start. In a container: node scripts/tool.mjs keys, and so on.
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { buildProblem, nodeProblem } from './checkout/machine.mjs';
import { ROOT, STACK_ENV } from './checkout/project.mjs';
import { exitCode } from './processes/command.mjs';
import { UsageError, aside, commandLine, unknown, wholeNumber } from './processes/command-line.mjs';

const SIGNALS = /** @type {const} */ (['SIGINT', 'SIGTERM', 'SIGHUP']);
const REPUBLISH = 'dist/apps/users/src/tools/republish.main.js';

/**
 * @typedef {object} Step
 * @property {string} program below the checkout
 * @property {string} [database] the variable that counts before DATABASE_URL; without one the program uses the broker
 * @property {string[]} [names] other variables that say which system is meant
 * @property {boolean} [explains] says itself what to set
 * @property {(given: string[]) => string[]} [args] as given by itself
 * @property {(given: string[]) => boolean} [onlyIf] absent: always
 */

/** @type {Record<string, { about: string, steps: Step[] }>} */
const TOOLS = {
  keys: {
    about: 'API keys and their tokens',
    steps: [
      { program: 'dist/apps/users/src/tools/keys.main.js', database: 'USERS_DATABASE_URL' },
      {
        program: 'dist/libs/rabbitmq-admin/src/accounts/known.main.js',
        // Where the broker is not named, it is not that of a running npm start: the database may be another.
        onlyIf: (given) => given.includes('grant') && isSet('AMQP_URL') && isSet('RABBITMQ_MANAGEMENT_URL'),
      },
    ],
  },
  events: {
    about: 'events of everything that the users service has, once more',
    steps: [{ program: REPUBLISH, database: 'USERS_DATABASE_URL' }],
  },
  copy: {
    about: 'the copy of memberships in notifications, brought in line with users while both run',
    steps: [
      {
        program: 'dist/apps/notifications/src/tools/distrust-copy.main.js',
        database: 'NOTIFICATIONS_DATABASE_URL',
        args: (given) => given.filter((word) => word === '--json'),
      },
      {
        program: REPUBLISH,
        database: 'USERS_DATABASE_URL',
        args: (given) => ['republish', ...given.filter((word) => word !== 'rebuild')],
      },
    ],
  },
  tenants: {
    about: 'a tenant, copied to another installation or removed',
    steps: [{ program: 'dist/libs/tenants/src/tenants.main.js', names: ['DATABASE_URL'] }],
  },
  accounts: {
    about: 'broker accounts of other services',
    steps: [{ program: 'dist/libs/rabbitmq-admin/src/accounts/accounts.main.js' }],
  },
  doctor: {
    about: 'what is wrong with the configuration, the broker and the database',
    steps: [{ program: 'dist/libs/doctor/src/doctor.main.js', names: ['AMQP_URL', 'DATABASE_URL'], explains: true }],
  },
  'dead-letters': {
    about: 'dead letters: looks at them, replays them, drops them',
    steps: [{ program: 'dist/libs/rabbitmq-admin/src/dead-letters/dead-letters.main.js' }],
  },
};

const name = commandLine(
  {
    command: 'node scripts/tool.mjs',
    about: 'Runs a tool for operators. Each has a help of its own.',
    passedOn: 'the tool',
    notes: [
      Object.entries(TOOLS)
        .map(([tool, { about }]) => `  ${tool.padEnd(12)}   ${about}`)
        .join('\n'),
    ],
    examples: { 'keys --help': 'what npm run keys -- --help says' },
  },
  ({ words: [tool] }) => {
    if (tool === undefined) throw new UsageError(`The name of the tool is missing; there are: ${Object.keys(TOOLS).join(', ')}.`);
    if (!Object.hasOwn(TOOLS, tool)) throw unknown('tool', tool, Object.keys(TOOLS));
    return tool;
  },
);
// The rest is the tool's own command line, also for one that runs in this process.
process.argv.splice(2, 1);
const json = process.argv.includes('--json');
const tooOld = nodeProblem();
if (tooOld) {
  aside('error', tooOld, json);
  process.exit(1);
}
if (name === 'copy') checkCopy();
for (const step of TOOLS[name].steps) {
  if (step.onlyIf?.(process.argv.slice(2)) === false) continue;
  const code = await run(step);
  if (code !== undefined && code !== 0) process.exit(code);
}

/** @param {string} variable */
function isSet(variable) {
  return Boolean(process.env[variable] || process.env[`${variable}_FILE`]);
}

/** Before the first step, which is not undone when the second one refuses its arguments. */
function checkCopy() {
  commandLine(
    {
      command: 'npm run copy --',
      about: 'Brings the copy of memberships in the notifications service in line with the users service, while both run.',
      words: { name: 'COMMAND', help: 'what to do:', known: ['rebuild'], least: 1, most: 1 },
      options: {
        rate: { value: 'N', help: 'rows of the database a second, at most (default 5000)' },
        json: { help: 'the result as one JSON object: { events, rows: { <kind>: <number> } }' },
      },
      notes: [
        'The databases are those of NOTIFICATIONS_DATABASE_URL and USERS_DATABASE_URL or of DATABASE_URL, else those of a running "npm start".',
      ],
      examples: { rebuild: 'can be repeated', 'rebuild --rate 500 --json': 'beside a system that has much to do' },
    },
    ({ values: { rate } }) => rate && wholeNumber('--rate', rate, 9_999_999),
  );
}

/**
 * @param {Step} step
 * @returns {Promise<number | undefined>} its exit code, absent while it goes on in this process
 */
async function run({
  program,
  database,
  explains,
  names = database ? [database, 'DATABASE_URL'] : ['AMQP_URL'],
  args = (given) => given,
}) {
  const problem = buildProblem(program);
  if (problem) {
    aside('error', problem, json);
    return 1;
  }
  const path = join(ROOT, program);
  const named = () => names.some(isSet);
  if (!named() && existsSync(STACK_ENV)) process.loadEnvFile(STACK_ENV);
  const advise = (/** @type {number | string} */ code) => {
    if (code === 1 && !named() && !explains)
      aside('note', `Run npm start in another terminal, or set ${names.join(' or ')}.`, json);
  };
  if (!database) {
    process.once('exit', advise);
    // In this process: a Ctrl-C must reach the tool once, which then ends between two letters.
    createRequire(import.meta.url)(path);
    return undefined;
  }
  const child = spawn(process.execPath, [path, ...args(process.argv.slice(2))], { stdio: 'inherit' });
  // One that reaches this process alone must not leave the work to go on behind it.
  const passOn = (/** @type {NodeJS.Signals} */ signal) => child.kill(signal);
  for (const signal of SIGNALS) process.on(signal, passOn);
  const code = await exitCode(child);
  for (const signal of SIGNALS) process.off(signal, passOn);
  advise(code);
  if (typeof code === 'number') return code;
  aside('error', `The tool was ended by ${code}.`, json);
  return 1;
}
