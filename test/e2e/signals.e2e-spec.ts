import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer, type AddressInfo, type Socket } from 'node:net';
import { join } from 'node:path';
import { eventually } from '@app/testing/eventually';

/** Commands that run a program as process 1, like in a container. There the system ignores a signal without a handler. */
const AS_PROCESS_1 = [
  ['unshare', '--pid', '--fork', '--kill-child'],
  ['unshare', '--user', '--map-root-user', '--pid', '--fork', '--kill-child'],
];
/** Without namespaces the program is an ordinary process: then only its exit code shows that it has a handler. */
const PREFIX = AS_PROCESS_1.find(([command, ...options]) => spawnSync(command, [...options, 'true']).status === 0) ?? [];

const PROGRAMS = [
  'dist/gateway.js',
  'dist/users.js',
  'dist/notifications.js',
  'dist/libs/rabbitmq/src/topology/declare-topology.main.js',
];

/** A program that ignores the signal is killed then. Loading takes seconds on a busy machine. */
const LIMIT_MS = 20_000;

/** Servers that nothing listens on, and a delay that a process has only when it may have callers. */
const ENV = {
  PATH: process.env.PATH,
  AMQP_URL: 'amqp://127.0.0.1:1',
  RABBITMQ_MANAGEMENT_URL: 'http://127.0.0.1:1',
  DATABASE_URL: 'postgres://127.0.0.1:1/none',
  SHUTDOWN_DELAY_MS: '15000',
};

function start(
  args: string[],
  env: NodeJS.ProcessEnv = ENV,
): { child: ChildProcess; ended: Promise<unknown[]>; output: () => string } {
  const [command, ...parameters] = [...PREFIX, process.execPath, ...args];
  const child = spawn(command, parameters, { env, stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => (output += chunk.toString()));
  return { child, ended: once(child, 'exit'), output: () => output };
}

describe('SIGTERM', () => {
  it.each(PROGRAMS)('while %s is loading ends it at once', async (program) => {
    const hook = join(__dirname, 'sigterm-while-loading.cjs');
    const { child, ended, output } = start(['--require', hook, program]);
    const timer = setTimeout(() => child.kill('SIGKILL'), LIMIT_MS);
    const [code] = await ended;
    // A step of setup may find out that there is no broker in the same moment.
    expect([code, output().replace(/^RabbitMQ: waiting, .*\n/, '')]).toEqual([143, '']);
    clearTimeout(timer);
  });

  it('while a step of setup waits for the database ends it', async () => {
    const connections = new Set<Socket>();
    const silent = createServer((socket) => {
      connections.add(socket.resume());
      socket.on('error', () => undefined).on('close', () => connections.delete(socket));
    }).listen(0, '127.0.0.1');
    await once(silent, 'listening');
    const { port } = silent.address() as AddressInfo;
    const { child, ended } = start(['scripts/setup.mjs'], { ...ENV, DATABASE_URL: `postgres://127.0.0.1:${port}/none` });
    try {
      await eventually(() => connections.size > 0);
      process.kill(programOf(child), 'SIGTERM');
      expect((await ended)[0]).toBe(143);
      await eventually(() => connections.size === 0);
    } finally {
      child.kill('SIGKILL');
      silent.close();
    }
  });
});

/** The program itself, which is a child of its prefix. */
function programOf({ pid = 0 }: ChildProcess): number {
  return PREFIX.length === 0 ? pid : Number(readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim());
}
