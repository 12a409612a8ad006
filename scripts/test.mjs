// npm test: everything that can be checked, on a broker and a database of its own.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { exampleTools } from './programs/example-tools.mjs';
import { commandLine } from './processes/command-line.mjs';
import { checkGivenServer } from './servers/given-servers.mjs';
import { runJest } from './checkout/jest.mjs';
import { dependenciesInStep } from './checkout/dependencies.mjs';
import { UserError, checkMachine } from './checkout/machine.mjs';
import { npm } from './checkout/npm.mjs';
import { runToEnd } from './checkout/run-to-end.mjs';
import { prepare } from './checkout/prepare.mjs';
import { report } from './checkout/progress.mjs';
import { ROOT } from './checkout/project.mjs';
import { byDatabase, needsOfChosen } from './checkout/test-needs.mjs';
import { INSTALL_NOTHING } from './programs/packages.mjs';
import { PROMETHEUS_MISSING, hasPrometheus } from './servers/prometheus.mjs';
import { CLUSTER_NEEDS_PROGRAM, findRabbit } from './servers/rabbitmq/program.mjs';
import { temporaryDirectory } from './processes/temporary-directory.mjs';
import { TestServers } from './servers/test-servers.mjs';

const CHECKS = ['typecheck', 'format:check', 'docs:check', 'lint:containers', 'lint:manifests', 'lint'];
// A short share of security: npm run test:security does the whole. In one run, so that no file at the end of a project is waited for.
const SERVER_PROJECTS = ['integration', 'e2e', 'security'];

/** The data of the servers that tests start for themselves is in memory, see scripts/servers/run.mjs. */
const IN_MEMORY = { TEST_SERVERS_IN_MEMORY: 'true' };

const chosen = commandLine(
  {
    command: 'npm test --',
    about:
      'Checks everything that can be checked, on a broker and a database of its own. Arguments of Jest choose tests instead.',
    passedOn: 'Jest',
    notes: [
      'AMQP_URL with TEST_RABBITMQ_MANAGEMENT_URL, and DATABASE_URL, say which servers the tests use instead of their own.',
    ],
    examples: {
      '': 'everything: linter, types, documents, and every test',
      '--selectProjects unit': 'the tests that need no server',
      "apps/users -t 'two of them'": 'the tests of some files with some words in their names',
    },
  },
  ({ words }) => words,
);
/** @typedef {NodeJS.ProcessEnv} Settings */

const totals = { passed: 0, failed: 0 };
const reports = temporaryDirectory('jest-reports');
const servers = new TestServers();
let leaving = false;
/** The tests that this machine has no means for: said again at the end. @type {string[]} */
const notRun = [];

await runToEnd(main, async (code) => {
  leaving = true;
  if (code === 1) totals.failed ||= 1; // a check that failed is a failure, too
  await servers.remove();
  reports.remove();
  for (const said of notRun) report(said);
  process.stdout.write(`${totals.passed} passed, ${totals.failed} failed\n`);
});

async function main() {
  checkMachine();
  if (chosen.length > 0) return runChosen();
  const given = await givenServers();
  // The servers start beside the installation and the checks; the broker needs no package of ours.
  const prepared = prepare();
  const broker = startBroker(given);
  const database = prepared.then(() => startDatabase(given));
  await Promise.race([prepared.then(() => runSteps(broker, database)), failureOf(broker), failureOf(database)]);
}

async function runChosen() {
  process.env[INSTALL_NOTHING] = 'true';
  if (!existsSync(join(ROOT, 'node_modules/jest'))) throw new UserError('There are no packages yet: npm ci installs them.');
  if (!dependenciesInStep()) report('node_modules is not what package-lock.json says: npm ci brings it in step');
  const needs = await needsOfChosen(chosen);
  const given = needs.broker || needs.database ? await givenServers() : {};
  const settings = await Promise.all([
    needs.broker && startBroker(given),
    needs.database && startDatabase(given),
    needs.exampleTools && examples(),
    needs.build && prepare({ install: false }),
  ]);
  await jest('the chosen tests', chosen, Object.assign({}, IN_MEMORY, ...settings));
}

async function givenServers() {
  const given = {
    broker: await checkGivenServer('AMQP_URL', process.env),
    database: await checkGivenServer('DATABASE_URL', process.env),
  };
  if (given.broker && !process.env.TEST_RABBITMQ_MANAGEMENT_URL)
    throw new UserError(
      'With AMQP_URL the tests also need TEST_RABBITMQ_MANAGEMENT_URL (http://user:password@host:15672): each makes virtual hosts of its own. Without AMQP_URL they start a broker themselves.',
    );
  return given;
}

/** @param {{ broker?: boolean }} given @returns {Promise<Settings>} */
async function startBroker(given) {
  return given.broker ? { TEST_AMQP_URL: process.env.AMQP_URL } : servers.startRabbit(report);
}

/** @param {{ database?: boolean }} given @returns {Promise<Settings>} */
async function startDatabase(given) {
  return given.database ? { TEST_DATABASE_URL: process.env.DATABASE_URL } : servers.startPostgres();
}

/** @param {Settings | Promise<Settings>} broker @param {Settings | Promise<Settings>} database */
async function runSteps(broker, database) {
  const settings = async () => ({ ...(await broker), ...(await database), ...(await examples()) });
  // Side by side: tests wait for servers and deadlines half of their time, and the checks never do.
  const files = byDatabase(SERVER_PROJECTS);
  const withOthers = async () => {
    await checkCode();
    await runServerTests('tests with the broker, or with servers of their own', (await files).others, settings);
  };
  const withDatabase = async () => {
    await jest('unit tests', ['--selectProjects', 'unit'], {});
    await runServerTests('tests with the database', (await files).database, settings);
  };
  await Promise.all([files, withOthers(), withDatabase()]);
  // Alone, because their calls have deadlines: beside other tests a slow machine misses them. The whole of each is a command of its own:
  // npm run test:cluster, test:faults and test:neighbours (on a disk). Here no disk that stands still for a second makes 503 of good calls.
  await runClusterPass();
  await jest('fault tests, the short pass', ['--selectProjects', 'faults', '--testPathPatterns', 'short'], IN_MEMORY);
  await jest('neighbour tests, the short pass', ['--selectProjects', 'neighbours', '--testPathPatterns', 'short'], IN_MEMORY);
}

async function checkCode() {
  for (const check of CHECKS) await step(check, () => npm(['run', check]));
  await checkRules();
}

async function runClusterPass() {
  if (findRabbit())
    await jest(
      'cluster tests, the short pass',
      ['--selectProjects', 'cluster', '--testPathPatterns', 'cluster/short'],
      IN_MEMORY,
    );
  else notRun.push(`NOT RUN: the short pass of the cluster tests. ${CLUSTER_NEEDS_PROGRAM}`);
}

/** @param {string} name @param {string[]} files @param {() => Promise<Settings>} settings */
async function runServerTests(name, files, settings) {
  await jest(name, ['--selectProjects', ...SERVER_PROJECTS, '--runTestsByPath', ...files], {
    ...(await settings()),
    ...IN_MEMORY,
  });
}

async function checkRules() {
  if (hasPrometheus()) await step('alerts', () => npm(['run', 'alerts']));
  else notRun.push(`NOT RUN: the check of the rules for Prometheus. ${PROMETHEUS_MISSING}`);
}

// After the broker, whose own installation may be under way.
async function examples() {
  const { missing, unused, ...tools } = await exampleTools(report);
  if (missing.length > 0) {
    const said = `NOT RUN: the examples that need ${missing.join(' and ')}; on Debian: apt-get install python3-pika amqp-tools curl jq`;
    notRun.push(said);
    if (process.env.CI) throw new UserError(said);
  }
  if (unused.length > 0) notRun.push(`NOT RUN: the examples in Go or Java; on Debian: apt-get install ${unused.join(' ')}`);
  return { TEST_EXAMPLE_TOOLS: JSON.stringify(tools) };
}

// Settles only when the work fails, so that a failure is not noticed minutes later.
/** @param {unknown} work */
async function failureOf(work) {
  await work;
  return new Promise(() => {});
}

/** @param {string} name @param {string[]} args @param {NodeJS.ProcessEnv} settings */
async function jest(name, args, settings) {
  await step(name, async () => {
    const { passed, failed } = await runJest(args, settings, join(reports.path, `${name}.json`));
    totals.passed += passed;
    if (leaving) throw new Error('stopped'); // its count is that of a run cut short
    totals.failed += failed;
    if (failed > 0) throw new Error(`${failed} failed`);
  });
}

/** @param {string} name @param {() => Promise<void>} work */
async function step(name, work) {
  if (leaving) throw new Error('stopped');
  const since = Date.now();
  const seconds = () => ((Date.now() - since) / 1000).toFixed(1);
  try {
    await work();
    report(`ok      ${name} (${seconds()} s)`);
  } catch (error) {
    report(`${leaving ? 'stopped' : 'FAILED '} ${name} (${seconds()} s)`);
    throw Object.assign(error, { message: `The step "${name}" failed: ${error.message}` });
  }
}
