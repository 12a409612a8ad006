import { execFile, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, readdirSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { connectionFailure, freePorts } from '../../processes/free-port.mjs';
import { commandLine, endProcess, isAlive, signal } from '../../processes/processes.mjs';
import { ServerProcess } from '../../processes/server-process.mjs';
import { BROKER_SETTINGS, CLUSTER_SETTINGS, tlsConfiguration } from './settings.mjs';

// epmd tells Erlang nodes where the others are. Started by a node it becomes a daemon that outlives it; started here it
// stays in the node's process group and ends with it.
const LAUNCH = `
epmd -port "$ERL_EPMD_PORT" -address 127.0.0.1 >/dev/null 2>&1 </dev/null &
i=0
until epmd -port "$ERL_EPMD_PORT" -names >/dev/null 2>&1 || [ $i -ge 100 ]; do sleep 0.05; i=$((i + 1)); done
exec "$0"
`;

// A member waits for the data of the others, in turns of 30 s.
const READY_MS = 180_000;

// A member of a cluster has a port mapper of its test.
const LAUNCH_MEMBER = 'exec "$0"';

// Should that one have been killed, the node has started another, as a daemon.
const END_EPMD = 'epmd -kill >/dev/null 2>&1';

// At its end the management plugin's listener of events asks for statistics of parts that have ended before it: RabbitMQ waits 5 s for that.
const END_STATISTICS = 'gen_event:delete_handler(rabbit_event, rabbit_mgmt_db_handler, stop).';
const END_STATISTICS_MS = 5000;

/**
 * Starts a RabbitMQ node of our own from the programs of this machine. It shares nothing with a system-wide node.
 * @param {import('./rabbitmq.mjs').CompleteOptions} options
 * @param {{ server: string, path: string }} programs
 */
export async function startNativeRabbit(options, programs) {
  const { directory, management, disposable, user, password, tls, ports: preferred = {}, member, onDeath, abort } = options;
  const [port, managementPort, freeDistributionPort, freeEpmdPort] = await freePorts([
    preferred.amqp,
    preferred.management,
    undefined,
    undefined,
  ]);
  const { distributionPort, epmdPort } = member ?? { distributionPort: freeDistributionPort, epmdPort: freeEpmdPort };
  const pidFile = join(directory, 'node.pid');
  await endOrphan(pidFile, directory);
  const environment = writeConfiguration({ directory, management, user, password, tls, port, managementPort, member });
  const env = {
    ...environment,
    ...neededPlugins(directory, programs.server),
    PATH: programs.path,
    RABBITMQ_DIST_PORT: String(distributionPort),
    ERL_EPMD_PORT: String(epmdPort),
    ERL_EPMD_ADDRESS: '127.0.0.1',
  };
  const endEpmd = member ? ':' : END_EPMD;
  /** @param {string} program @param {string[]} args @param {number} [timeout] */
  const run = async (program, args, timeout) =>
    (await promisify(execFile)(join(dirname(programs.server), program), args, { env, timeout })).stdout.trim();
  const server = new ServerProcess({
    name: 'RabbitMQ',
    describe: () => ({
      command: 'sh',
      args: ['-c', member ? LAUNCH_MEMBER : LAUNCH, programs.server],
      options: { cwd: directory, env },
    }),
    logFile: join(directory, 'console.log'),
    isReady: () => accepts(port, management ? managementPort : undefined),
    stopSignal: 'SIGTERM',
    ...(management && { beforeStop: () => run('rabbitmqctl', ['eval', END_STATISTICS], END_STATISTICS_MS) }),
    readyMs: member && READY_MS,
    onOrphaned: {
      script: disposable ? `end_group KILL 10; ${endEpmd}` : `end_group TERM 60; ${endEpmd}`,
      variables: { PATH: programs.path, ERL_EPMD_PORT: String(epmdPort) },
    },
    onStart: (pid) => writeFileSync(pidFile, String(pid)),
    onExit: () => {
      rmSync(pidFile, { force: true });
      spawnSync('sh', ['-c', endEpmd], { env, stdio: 'ignore' });
    },
    onDeath,
    abort,
  });
  await server.start();
  /** @param {string} program @param {string[]} args */
  const control = (program, ...args) => run(program, args);
  return { server, port, managementPort: management ? managementPort : undefined, control };
}

/** Of the names that begin with rabbitmq_: the others are packages that these need. */
const USED_PLUGINS = /^rabbitmq_(prelaunch|management|management_agent|web_dispatch)-/;

/**
 * A folder with only the packages that are used. Erlang looks for each module in the folders of all packages, which takes a sixth of a start.
 * @param {string} directory
 * @param {string} server
 */
function neededPlugins(directory, server) {
  const all = join(dirname(realpathSync(server)), '../plugins');
  if (!existsSync(all)) return {};
  const needed = join(directory, 'plugins');
  rmSync(needed, { recursive: true, force: true });
  mkdirSync(needed, { mode: 0o700 });
  for (const name of readdirSync(all))
    if (!name.startsWith('rabbitmq_') || USED_PLUGINS.test(name)) symlinkSync(join(all, name), join(needed, name));
  return { RABBITMQ_PLUGINS_DIR: needed };
}

/**
 * @param {Pick<import('./rabbitmq.mjs').CompleteOptions, 'directory' | 'management' | 'user' | 'password' | 'tls' | 'member'> & { port: number, managementPort: number }} options
 */
function writeConfiguration({ directory, management, user, password, tls, port, managementPort, member }) {
  for (const name of ['mnesia', 'log', 'schema', 'config', 'conf.d'])
    mkdirSync(join(directory, name), { recursive: true, mode: 0o700 });
  const cookie = join(directory, '.erlang.cookie');
  // It guards a port on the loopback address, yet a program that knows it may run code as us: as secret as the password.
  if (!existsSync(cookie)) writeFileSync(cookie, password, { mode: 0o400 });
  writeFileSync(join(directory, 'enabled_plugins'), management ? '[rabbitmq_management].' : '[].');
  const plain = [
    `listeners.tcp.1 = 127.0.0.1:${port}`,
    ...(management ? ['management.tcp.ip = 127.0.0.1', `management.tcp.port = ${managementPort}`] : []),
  ];
  const configuration = [
    `default_user = ${user}`,
    `default_pass = ${password}`,
    'disk_free_limit.absolute = 50MB',
    'log.console = false',
    'log.file.rotation.size = 10485760',
    'log.file.rotation.count = 1',
    ...(tls ? tlsConfiguration('127.0.0.1', port, managementPort, tls) : plain),
    ...(member ? clusterSettings(member) : []),
  ];
  const configurationFile = join(directory, 'rabbitmq.conf');
  rmSync(configurationFile, { force: true });
  writeFileSync(configurationFile, `${configuration.join('\n')}\n`, { mode: 0o600 });
  /** @param {string} name @param {number | string | boolean} value */
  const term = (name, value) => `{${name}, ${value}}`;
  /** @param {Record<string, number | string | boolean>} values */
  const listOf = (values) =>
    `[${Object.entries(values)
      .map(([name, value]) => term(name, value))
      .join(', ')}]`;
  const settings = { ...BROKER_SETTINGS, ...(member && CLUSTER_SETTINGS) };
  const advanced = Object.entries(settings).map(([application, values]) => term(application, listOf(values)));
  writeFileSync(join(directory, 'advanced.config'), `[${advanced.join(', ')}].\n`, { mode: 0o600 });
  return {
    HOME: directory, // where Erlang looks for the cookie
    LANG: 'C.UTF-8',
    RABBITMQ_NODENAME: member?.node ?? 'rabbit@localhost', // part of the data's path; unique by its own epmd
    RABBITMQ_CONF_ENV_FILE: '/dev/null',
    RABBITMQ_MNESIA_BASE: join(directory, 'mnesia'),
    RABBITMQ_LOG_BASE: join(directory, 'log'),
    RABBITMQ_SCHEMA_DIR: join(directory, 'schema'),
    RABBITMQ_GENERATED_CONFIG_DIR: join(directory, 'config'),
    RABBITMQ_CONFIG_FILE: configurationFile,
    RABBITMQ_CONFIG_FILES: join(directory, 'conf.d'),
    RABBITMQ_ADVANCED_CONFIG_FILE: join(directory, 'advanced.config'),
    RABBITMQ_ENABLED_PLUGINS_FILE: join(directory, 'enabled_plugins'),
    RABBITMQ_PID_FILE: join(directory, 'rabbit.pid'),
    // Makes the start script become the node instead of waiting for it: one process less, and signals arrive.
    RUNNING_UNDER_SYSTEMD: 'true',
    // No busy waiting: an idle broker leaves the processor alone.
    RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS: '+sbwt none +sbwtdcpu none +sbwtdio none -kernel inet_dist_use_interface {127,0,0,1}',
  };
}

/** @param {import('./rabbitmq.mjs').Member} member */
function clusterSettings({ peers, tickSeconds }) {
  return [
    'cluster_formation.peer_discovery_backend = classic_config',
    ...peers.map((peer, index) => `cluster_formation.classic_config.nodes.${index + 1} = ${peer}`),
    'cluster_partition_handling = pause_minority',
    // The first node asks the others for their cluster, and waits 5 s for one by default. The others wait for the first one in any case.
    'cluster_formation.discovery_retry_limit = 1',
    'cluster_formation.discovery_retry_interval = 100',
    ...(tickSeconds ? [`net_ticktime = ${tickSeconds}`] : []),
  ];
}

// RabbitMQ opens its listeners last, when it is ready to serve.
/** @param {number} port @param {number | undefined} managementPort */
async function accepts(port, managementPort) {
  if (await connectionFailure('127.0.0.1', port)) return false;
  return !managementPort || !(await connectionFailure('127.0.0.1', managementPort));
}

/** @param {string} pidFile @param {string} directory */
async function endOrphan(pidFile, directory) {
  if (!existsSync(pidFile)) return;
  const pid = Number(readFileSync(pidFile, 'utf8'));
  if (pid > 1 && isAlive(pid) && commandLine(pid).includes(directory)) {
    await endProcess(pid);
    signal(-pid, 'SIGKILL');
  }
  rmSync(pidFile, { force: true });
}
