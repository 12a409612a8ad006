import { isIP } from 'node:net';
import { join } from 'node:path';
import { endCommands, runQuietly } from '../processes/command.mjs';
import { probePort } from '../processes/free-port.mjs';
import { checkGivenServer } from '../servers/given-servers.mjs';
import { takeLock } from '../processes/lock.mjs';
import { UserError, checkMachine } from '../checkout/machine.mjs';
import { OwnServers } from '../servers/own-servers.mjs';
import { watchParent } from '../processes/parent.mjs';
import { configurationProblems } from '../checkout/configuration.mjs';
import { isPrepared, prepare } from '../checkout/prepare.mjs';
import { report, reportFailure, stage } from '../checkout/progress.mjs';
import { LOCAL, ROOT, SERVICES } from '../checkout/project.mjs';
import { ServiceLog } from './service-log.mjs';
import { Service } from './service.mjs';
import { removeStackEnv, writeStackEnv } from './stack-env.mjs';
import { readStackSecrets, writeStackSecrets } from './stack-secrets.mjs';
import { welcome } from './welcome.mjs';

const LOOPBACK = '127.0.0.1';
const DEMO = { key: 'demo-key', token: 'demo-token' };
const CONFIGURATIONS = {
  UsersMigrationConfig: 'apps/users/src/config.js',
  AccountsConfig: 'libs/rabbitmq/src/config.js',
  UsersConfig: 'apps/users/src/config.js',
  NotificationsConfig: 'apps/notifications/src/config.js',
  GatewayConfig: 'apps/gateway/src/config.js',
};

/** @type {OwnServers | undefined} */
let servers;
/** @type {Service[]} */
let services = [];
/** @type {number | undefined} */
let leavingSince;

/** @typedef {import('./service-log.mjs').Format} Format */

/**
 * @typedef {object} StackOptions
 * @property {Format} [format] of log lines on the terminal
 * @property {boolean} [operator] the operator's page as well
 * @property {(name: string) => import('./service.mjs').ServiceOptions} [optionsOf] a service
 * @property {(services: Record<string, Service>) => Promise<void>} [onReady] what goes on beside it from then on
 */

/**
 * The whole system in the foreground, from a fresh clone. Everything it starts ends with it.
 * @param {StackOptions} [options]
 */
export async function runStack(options = {}) {
  try {
    await run(options);
  } catch (error) {
    if (leavingSince) return; // what fails because it is being stopped is no news
    reportFailure(error);
    void leave(1);
  }
}

/** @param {StackOptions} options */
async function run({ format, operator, optionsOf, onReady }) {
  checkMachine();
  // Before anything starts, when that is possible without a build.
  if (isPrepared()) checkConfiguration(operator);
  const lock = takeLock(join(LOCAL, 'start.lock'));
  if (lock.holder)
    throw new UserError(
      `This checkout is already running: npm start or npm run dev, process ${lock.holder}. Stop it first, or use another checkout.`,
    );
  // The demo credentials are public: they are for this machine, unless somebody says otherwise. So is what operators read.
  const host = process.env.HOST || LOOPBACK;
  const port = await checkPort('PORT', process.env.PORT || '3000', host);
  const operatorPort = operator && (await checkPort('OPERATOR_PORT', process.env.OPERATOR_PORT || '3001', LOOPBACK));
  const given = {
    broker: await checkGivenServer('AMQP_URL', process.env),
    database: await checkGivenServer('DATABASE_URL', process.env),
  };
  stopOnRequest();

  const secrets = readStackSecrets();
  const own = new OwnServers(secrets);
  servers = own;
  // The broker takes longest and needs no package of ours, so it starts beside the installation.
  const broker = given.broker ? {} : stage('starting RabbitMQ', () => own.startRabbit(report));
  const prepared = prepare().then(async () => {
    checkConfiguration(operator);
    const settings = given.database ? {} : await stage('starting PostgreSQL', () => own.startPostgres());
    if (!leavingSince) await setUp('migrating', ['users', 'notifications'], settings);
    return settings;
  });
  const settings = { NODE_ENV: 'production', ...Object.assign({}, ...(await Promise.all([broker, prepared]))) };
  if (leavingSince) return;
  writeStackSecrets(secrets);
  await setUp('declaring queues', ['accounts', 'topology'], settings);
  if (leavingSince) return;
  const env = { ...process.env, ...settings, PORT: String(port), HOST: host, HEALTH_HOST: LOOPBACK };
  writeStackEnv(env, ['AMQP_URL', 'DATABASE_URL', ...Object.keys(settings)]);

  services = SERVICES.map((name) => new Service(name, env, logOf(name, format), optionsOf?.(name)));
  await stage('starting services', () => Promise.all(services.map((service) => service.start())));
  if (leavingSince) return;
  const page = operatorPort ? await startOperator(env, operatorPort, secrets.passwords.operator, format) : undefined;
  if (leavingSince) return;
  report('ready');
  process.stdout.write(welcome(`http://localhost:${port}`, DEMO, { foreignDatabase: Boolean(given.database), page }));
  await onReady?.(Object.fromEntries(SERVICES.map((name, index) => [name, services[index]])));
}

/**
 * Throws when a program would refuse its configuration: it would not do better at a second attempt.
 * @param {boolean} [operator] the operator's page as well
 */
function checkConfiguration(operator) {
  const { env } = process;
  const problems = configurationProblems(
    operator ? { ...CONFIGURATIONS, OperatorConfig: 'apps/operator/src/config.js' } : CONFIGURATIONS,
    {
      ...env,
      // The URLs of servers that do not run yet, and what is given to each process whatever the environment says.
      ...(!env.AMQP_URL && !env.AMQP_URL_FILE && { AMQP_URL: `amqp://${LOOPBACK}` }),
      ...(!env.DATABASE_URL && !env.DATABASE_URL_FILE && { DATABASE_URL: `postgres://user@${LOOPBACK}/name` }),
      HEALTH_PORT: '0',
      HEALTH_HOST: LOOPBACK,
      OPERATOR_TOKEN: 'x'.repeat(32),
      OPERATOR_HOST: LOOPBACK,
      OPERATOR_PROCESSES: `${LOOPBACK}:1`,
    },
  );
  if (problems) throw new UserError(problems);
}

// The demo credentials exist only here and in the compose file: the services know nothing of them.
/** @param {string} what @param {string[]} steps @param {Record<string, string>} settings */
function setUp(what, steps, settings) {
  const env = { ...process.env, NODE_ENV: 'production', ...settings, DEMO_CREDENTIALS: process.env.DEMO_CREDENTIALS || 'true' };
  return stage(what, () => runQuietly(process.execPath, ['scripts/setup.mjs', ...steps], { cwd: ROOT, env, name: 'Setup' }));
}

/**
 * @param {NodeJS.ProcessEnv} env
 * @param {number} port
 * @param {string} token
 * @param {Format} [format]
 * @returns where the page is, and its token
 */
async function startOperator(env, port, token, format) {
  const settings = {
    OPERATOR_TOKEN: token,
    OPERATOR_HOST: LOOPBACK,
    OPERATOR_PORT: String(port),
    OPERATOR_PROCESSES: services.map(({ healthPort }) => `${LOOPBACK}:${healthPort}`).join(','),
  };
  const operator = new Service('operator', { ...env, ...settings }, logOf('operator', format));
  services.push(operator);
  await stage("starting the operator's page", () => operator.start());
  return { url: `http://localhost:${port}`, token };
}

/** @param {string} name @param {Format} [format] */
function logOf(name, format) {
  return new ServiceLog(name, join(LOCAL, 'logs', `${name}.log`), format);
}

/** @param {string} name of the variable @param {string} text @param {string} host */
async function checkPort(name, text, host) {
  const port = Number(text);
  if (!isIP(host)) throw new UserError('HOST must be an IP address: 127.0.0.1, which is the default, or :: for every one.');
  if (!/^\d+$/.test(text) || port < 1 || port > 65_535) throw new UserError(`${name} must be a whole number from 1 to 65535.`);
  try {
    // Both: on some systems a port that is taken on one address can still be had on all of them.
    await probePort(port, LOOPBACK);
    // Without one Node takes every address, where there is no IPv6 as well.
    return await probePort(port, host === '::' ? undefined : host);
  } catch (error) {
    if (error.code === 'EACCES')
      throw new UserError(`Port ${port} needs more rights than this user has; set ${name} to one above 1023.`);
    if (error.code === 'EADDRNOTAVAIL') throw new UserError('HOST must be an address of this machine.');
    throw new UserError(
      `Port ${port} is taken; stop what listens there, or set ${name} to another, for example ${name}=${port + 1} npm start.`,
    );
  }
}

function stopOnRequest() {
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(name, () => void leave(0));
  watchParent(() => {
    report('the process that started this one is gone');
    void leave(0);
  });
  // A closed terminal must not keep us from cleaning up.
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => {});
}

/** @param {number} code */
async function leave(code) {
  if (leavingSince) {
    // One Ctrl-C arrives twice: from the terminal and handed on by npm.
    if (Date.now() - leavingSince < 1_000) return;
    await Promise.all(services.map((service) => service.kill()));
    await servers?.kill();
    if (servers) removeStackEnv();
    process.exit(130);
  }
  leavingSince = Date.now();
  if (code === 0) report('stopping (again to stop at once)');
  endCommands();
  await Promise.all(services.map((service) => service.stop()));
  await servers?.stop();
  if (servers) removeStackEnv();
  if (code === 0) report('stopped');
  process.exit(code);
}
