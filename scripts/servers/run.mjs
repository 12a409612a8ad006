// One private server for a test that wants to break it. Jest cannot import these modules, so it talks to a child:
// stdout: one JSON line when ready, then one for each command line on stdin: stop, kill, start, pause, resume, for PostgreSQL backup (with --archive) and reload
// (takes replaced certificates), and for RabbitMQ
// memory alarm on, memory alarm off, and the same for disk: an alarm blocks every connection that publishes; and memory as deployed;
// and the command lines of rabbitmqctl, rabbitmq-queues and rabbitmq-upgrade. CLUSTER_MEMBER (JSON) makes a RabbitMQ one node of a cluster.
// When stdin closes, the server and its data are removed.
import { randomBytes } from 'node:crypto';
import { createInterface } from 'node:readline';
import { commandLine } from '../processes/command-line.mjs';
import { temporaryDirectory } from '../processes/temporary-directory.mjs';
import { backUp } from './postgres/archive.mjs';
import { startPostgres } from './postgres/postgres.mjs';
import { startPrometheus } from './prometheus.mjs';
import { startRabbit } from './rabbitmq/rabbitmq.mjs';

const { kind, management, fsync, tls, standbyOf, archive, restore, until, setting, rules, password } = commandLine(
  {
    command: 'node scripts/servers/run.mjs',
    about: 'Runs one private server for a test that breaks it, until its input closes.',
    words: { name: 'SERVER', help: 'which one:', known: ['rabbitmq', 'postgres', 'prometheus'], least: 1, most: 1 },
    options: {
      management: { help: "RabbitMQ's HTTP API as well" },
      tls: { value: 'DIRECTORY', help: 'only TLS, with ca.pem, cert.pem and key.pem of that directory' },
      fsync: { help: 'PostgreSQL keeps its promises when the machine fails' },
      archive: { value: 'DIRECTORY', help: 'a PostgreSQL that archives its log there, and its files at the order backup' },
      restore: { value: 'DIRECTORY', help: 'a PostgreSQL with what such a directory has' },
      until: { value: 'TIME', help: 'not later than this' },
      'standby-of': { value: 'URL', help: 'a PostgreSQL that follows the one at this URL, on the same machine' },
      setting: { value: 'NAME=VALUE', help: 'one of PostgreSQL' },
      password: { help: 'PostgreSQL asks for passwords; that of its superuser is in its URL' },
      rules: { value: 'FILE', help: 'with rules for Prometheus' },
    },
    examples: { 'rabbitmq --management': 'a broker', postgres: 'a database' },
  },
  ({ words: [server], values }) => ({
    kind: server,
    ...values,
    standbyOf: values['standby-of'],
  }),
);

/** @param {object} line */
const say = (line) => process.stdout.write(`${JSON.stringify(line)}\n`);
process.stdout.on('error', () => {}); // the listener is gone; stdin says so, too

const temporary = temporaryDirectory(kind, { inMemory: Boolean(process.env.TEST_SERVERS_IN_MEMORY) });
const directory = temporary.path;
let leaving;
/** @param {number} code */
const leave = (code) =>
  (leaving ??= (async () => {
    const { server } = (await started.catch(() => undefined)) ?? {};
    await server?.kill();
    await server?.dismissReaper();
    temporary.remove();
    process.exit(code);
  })());

/** @type {Partial<import('./rabbitmq/rabbitmq.mjs').RabbitOptions>} */
const member = JSON.parse(process.env.CLUSTER_MEMBER ?? '{}');

/**
 * A property that not every server has is undefined in the others.
 * @typedef {object} Started
 * @property {Awaited<ReturnType<typeof startRabbit>>['server']} server
 * @property {string} url
 * @property {number} port
 * @property {string} [managementUrl]
 * @property {Awaited<ReturnType<typeof startRabbit>>['control']} [control]
 * @property {() => void} [reload]
 */

const newPassword = () => randomBytes(16).toString('hex');

/** @type {Promise<Started>} */
const started = startServer();

/** @returns {Promise<Started>} */
function startServer() {
  if (kind === 'prometheus') return startPrometheus({ directory, rules });
  if (kind === 'postgres') {
    const settings = setting ? [setting] : [];
    const restoreFrom = restore ? { archive: restore, until } : undefined;
    const secret = password ? newPassword() : undefined;
    return startPostgres({ directory, fsync: fsync ?? false, password: secret, tls, standbyOf, settings, archive, restoreFrom });
  }
  return startRabbit({ directory, disposable: true, management, tls, password: newPassword(), ...member });
}

// Signals end the process without cleaning up otherwise; a closed stdin says that the test is over or dead.
for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(name, () => leave(1));
const commands = createInterface({ input: process.stdin });
commands.on('close', () => leave(0));

const VERBS = /** @type {const} */ (['stop', 'kill', 'start', 'pause', 'resume']);

// A limit that is exceeded at once, and the default.
/** @type {Record<string, string[]>} */
const LIMITS = {
  'memory alarm on': ['set_vm_memory_high_watermark', '0.000001'],
  'memory alarm off': ['set_vm_memory_high_watermark', '0.6'],
  // As in deploy/compose/rabbitmq.conf.
  'memory as deployed': ['set_vm_memory_high_watermark', 'absolute', '1200MiB'],
  'disk alarm on': ['set_disk_free_limit', '1000000GB'],
  'disk alarm off': ['set_disk_free_limit', '50MB'],
};

const TOOLS = ['rabbitmqctl', 'rabbitmq-queues', 'rabbitmq-upgrade'];

/** @param {string} command */
const obey = async (command) => {
  const { server, control, reload, url } = await started;
  if (archive && command === 'backup') {
    await backUp(url, archive);
    return { ok: true, command };
  }
  if (reload && command === 'reload') {
    reload();
    return { ok: true, command, pid: server.pid ?? null };
  }
  if (control && command in LIMITS) {
    await control('rabbitmqctl', ...LIMITS[command]);
    return { ok: true, command, pid: server.pid ?? null };
  }
  const [program, ...args] = command.split(' ');
  if (control && TOOLS.includes(program)) return { ok: true, command, output: await control(program, ...args) };
  const verb = VERBS.find((one) => one === command);
  if (!verb) throw new Error(`unknown command: ${command}`);
  await server[verb]();
  return { ok: true, command, pid: server.pid ?? null };
};

let queue = started.then(({ server, url, port, managementUrl }) => say({ url, port, managementUrl, directory, pid: server.pid }));
queue.catch((error) => {
  console.error(error.message);
  leave(1);
});
// One at a time, answered in order; sent before the server is ready, a command waits.
commands.on('line', (line) => {
  const command = line.trim();
  if (command) queue = queue.then(() => obey(command)).then(say, (error) => say({ ok: false, command, error: error.message }));
});
