import { readFileSync } from 'node:fs';
import { Script, testDirectory } from './script';

/** With servers in sh, which are ready when there is a file. */
const PROGRAM = (body: string) => `
  import { existsSync, rmSync } from 'node:fs';
  import { ServerProcess } from './scripts/processes/server-process.mjs';
  const [READY] = process.argv.slice(1);
  const say = (word) => console.log(JSON.stringify(word));
  const serverOf = ({ script, command = 'sh', ...options }) => new ServerProcess({
    name: 'The server',
    describe: () => (rmSync(READY, { force: true }), { command, args: ['-c', script], options: { env: { PATH: process.env.PATH, READY } } }),
    logFile: READY + '.log',
    isReady: async () => existsSync(READY),
    stopSignal: 'SIGINT',
    onOrphaned: { script: 'end_group KILL 1' },
    onExit: () => say('exit'),
    onDeath: () => say('death'),
    ...options,
  });
  const SERVE = 'touch "$READY"; sleep 60 & wait';
  const GOOD = 'trap "echo asked; exit 0" INT; echo begun; ' + SERVE;
  const NEVER = 'trap "exit 0" INT; sleep 60 & wait';
  const DEAF = 'trap "" INT; ' + SERVE;
  try {
    ${body}
  } catch (error) {
    say(error.message.replaceAll(READY, 'READY'));
  }
  process.exit(0);
`;

const directory = testDirectory();
const ready = directory.path('ready');
afterEach(() => Script.endAll());
afterAll(() => directory.remove());

async function said(body: string): Promise<unknown[]> {
  const { code, stdout, stderr } = await new Script(PROGRAM(body), [ready]).outcome();
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  return stdout.split('\n').map((line) => JSON.parse(line) as unknown);
}

describe('a server process', () => {
  it('runs from when it is ready until it is stopped, which is no death', async () => {
    expect(
      await said(`
        const server = serverOf({ script: GOOD });
        await server.start();
        say([server.running, server.pid > 1]);
        await server.stop();
        say([server.running, server.pid === undefined]);`),
    ).toEqual([[true, true], 'exit', [false, true]]);
    expect(readFileSync(`${ready}.log`, 'utf8')).toBe('begun\nasked\n');
  });

  it('is prepared for a stop, which waits for that and not for its success', async () => {
    expect(
      await said(`
        const prepared = [async () => say('prepared'), async () => { throw new Error('it cannot'); }];
        for (const beforeStop of prepared) {
          const server = serverOf({ script: GOOD, beforeStop });
          await server.start();
          await server.stop();
        }
        const hanging = serverOf({ script: GOOD, beforeStop: () => new Promise(() => {}) });
        await hanging.start();
        await hanging.stop(50);`),
    ).toEqual(['prepared', 'exit', 'exit', 'exit']);
  });

  it('is killed when it does not stop in time, and stops also while it is paused', async () => {
    expect(
      await said(`
        const deaf = serverOf({ script: DEAF });
        await deaf.start();
        await deaf.stop(50);
        const paused = serverOf({ script: GOOD });
        await paused.start();
        await paused.pause();
        await paused.stop();
        say('stopped');`),
    ).toEqual(['exit', 'exit', 'stopped']);
    expect(readFileSync(`${ready}.log`, 'utf8')).toBe('begun\nasked\n');
  });

  it('has stopped in all its threads when it is paused, also on a busy machine', async () => {
    // Not with touch, which may not have ended when its file is seen.
    const BUSY = 'for i in 1 2 3 4 5 6 7 8; do (while :; do :; done) & done; trap "exit 0" INT; : > "$READY"; wait';
    expect(
      await said(
        `
        const { childrenOf, isStopped } = await import('./scripts/processes/processes.mjs');
        const server = serverOf({ script: BUSY });
        await server.start();
        const { pid } = server;
        const all = () => [pid, ...childrenOf(pid)].map(isStopped);
        say(all().includes(true));
        await server.pause();
        say([all().length, all().includes(false)]);
        server.resume();
        await server.kill();`.replace('BUSY', JSON.stringify(BUSY)),
      ),
    ).toEqual([false, [9, false], 'exit']);
  });

  it('reports a death that was not asked for, and starts again', async () => {
    expect(
      await said(`
        let died;
        const death = new Promise((resolve) => (died = resolve));
        const server = serverOf({ script: GOOD, onDeath: () => died('death') });
        await server.start();
        process.kill(server.pid, 'SIGKILL');
        say(await death);
        await server.start();
        say(server.running);
        await server.kill();`),
    ).toEqual(['exit', 'death', true, 'exit']);
  });

  it.each([
    [
      `serverOf({ script: 'echo it cannot >&2; exit 3' }).start()`,
      ['exit', 'The server ended while starting; the end of READY.log:\nit cannot'],
    ],
    [
      `serverOf({ script: '', command: '/nowhere/server' }).start()`,
      ['exit', 'The server could not be started: spawn /nowhere/server ENOENT'],
    ],
    [`serverOf({ script: NEVER }).start(100)`, ['exit', 'The server was not ready after 0.1 s; see READY.log']],
    [`serverOf({ script: NEVER, abort: AbortSignal.abort() }).start()`, ['exit', 'The server was stopped while starting']],
  ])('says why it did not start: %s', async (start, expected) => {
    expect(await said(`await ${start};`)).toEqual(expected);
  });

  it('ends with its parent, whatever way that one goes', async () => {
    const parent = new Script(
      PROGRAM(`
        const server = serverOf({ script: DEAF });
        await server.start();
        say(server.pid);
        await new Promise(() => setInterval(() => {}, 1000));`),
      [ready],
    );
    const pid = Number(await parent.next());
    parent.kill();
    const watcher = new Script(`
      import { commandLine } from './scripts/processes/processes.mjs';
      const since = Date.now();
      const timer = setInterval(() => {
        // One that nobody has waited for has a number still, and no command line.
        const line = commandLine(${pid});
        if (line !== '' && Date.now() - since < 60_000) return;
        clearInterval(timer);
        console.log(JSON.stringify(line));
      }, 10);`);
    expect(await watcher.next()).toBe('');
  });
});
