// One private server for a test that wants to break it. Jest cannot import these modules, so it talks to a child:
//   node scripts/servers/run.mjs rabbitmq|postgres [--management] [--fsync]
// With TEST_SERVERS_IN_MEMORY its data is in memory where there is room: for tests that do not measure.
// stdout: one JSON line when ready, then one for each command line on stdin: stop, kill, start, pause, resume, and for RabbitMQ
// memory alarm on, memory alarm off, and the same for disk: an alarm blocks every connection that publishes; and memory as deployed.
// When stdin closes, the server and its data are removed.
import { randomBytes } from 'node:crypto';
import { createInterface } from 'node:readline';
import { parseArgs } from 'node:util';
import { temporaryDirectory } from '../processes/temporary-directory.mjs';
import { startPostgres } from './postgres.mjs';
import { startRabbit } from './rabbitmq.mjs';

const { positionals, values } = parseArgs({
  allowPositionals: true,
  options: { management: { type: 'boolean', default: false }, fsync: { type: 'boolean', default: false } },
});
const [kind] = positionals;
if (positionals.length !== 1 || !['rabbitmq', 'postgres'].includes(kind)) {
  console.error('Usage: node scripts/servers/run.mjs rabbitmq|postgres [--management] [--fsync]');
  process.exit(2);
}

const say = (line) => process.stdout.write(`${JSON.stringify(line)}\n`);
process.stdout.on('error', () => {}); // whoever listened is gone; stdin tells us so, too

const temporary = temporaryDirectory(kind, { inMemory: Boolean(process.env.TEST_SERVERS_IN_MEMORY) });
const directory = temporary.path;
let leaving;
const leave = (code) =>
  (leaving ??= (async () => {
    const { server } = (await started.catch(() => undefined)) ?? {};
    await server?.kill();
    await server?.dismissReaper();
    temporary.remove();
    process.exit(code);
  })());

const started =
  kind === 'postgres'
    ? startPostgres({ directory, fsync: values.fsync })
    : startRabbit({ directory, disposable: true, management: values.management, password: randomBytes(16).toString('hex') });

// Signals end the process without cleaning up otherwise; a closed stdin says that the test is over or dead.
for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(name, () => leave(1));
const commands = createInterface({ input: process.stdin });
commands.on('close', () => leave(0));

// A limit that is exceeded at once, and the default.
const LIMITS = {
  'memory alarm on': ['set_vm_memory_high_watermark', '0.000001'],
  'memory alarm off': ['set_vm_memory_high_watermark', '0.6'],
  // As in deploy/compose/rabbitmq.conf.
  'memory as deployed': ['set_vm_memory_high_watermark', 'absolute', '600MiB'],
  'disk alarm on': ['set_disk_free_limit', '1000000GB'],
  'disk alarm off': ['set_disk_free_limit', '50MB'],
};

const obey = async (command) => {
  const { server, control } = await started;
  if (control && command in LIMITS) {
    await control(...LIMITS[command]);
    return { ok: true, command, pid: server.pid ?? null };
  }
  if (!['stop', 'kill', 'start', 'pause', 'resume'].includes(command)) throw new Error(`unknown command: ${command}`);
  await server[command]();
  return { ok: true, command, pid: server.pid ?? null };
};

let queue = started.then(({ server, url, port, managementUrl }) => say({ url, port, managementUrl, pid: server.pid }));
queue.catch((error) => {
  console.error(error.message);
  leave(1);
});
// One at a time, answered in order; sent before the server is ready, a command waits.
commands.on('line', (line) => {
  const command = line.trim();
  if (command) queue = queue.then(() => obey(command)).then(say, (error) => say({ ok: false, command, error: error.message }));
});
