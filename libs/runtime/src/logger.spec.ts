import { spawn, type ChildProcess, type ChildProcessByStdio } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, openSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { buildSync } from 'esbuild';

/** A program with the sources as they are now: what is in dist/ may be older. */
const programOf = (contents: string) =>
  buildSync({
    stdin: { contents, resolveDir: __dirname },
    bundle: true,
    platform: 'node',
    packages: 'external',
    write: false,
  }).outputFiles[0].text;
const LINES = 20_000;

/** Writes log lines, and reports its progress on a channel other than stdout. */
const PROGRAM = programOf(`
  import { register } from 'prom-client';
  import { createLogger, exitAfterLogging } from './logger';
  const logger = createLogger('test', 'info');
  process.once('message', async (bytes) => {
    for (let line = 0; line < ${LINES}; line++) logger.info({ line, filler: 'x'.repeat(bytes) });
    process.send(await register.getSingleMetric('log_lines_dropped_total').get());
    process.once('message', () => exitAfterLogging(logger, 3));
  });`);

const FAILED = programOf(`
  import { createLogger, exitAfterLogging } from './logger';
  const driverError = Object.assign(new Error('duplicate key'), { code: '23505', detail: 'Key (canary)' });
  const error = Object.assign(new Error('duplicate key', { cause: new Error('why') }), { ...driverError, driverError, parameters: ['canary'] });
  const logger = createLogger('test', 'info');
  logger.fatal({ err: error }, 'an uncaught error');
  exitAfterLogging(logger, 0);`);

/** Does what it is told, and answers each time with the number of dropped lines. */
const TOLD = programOf(`
  import { closeSync, openSync, write } from 'node:fs';
  import { register } from 'prom-client';
  import { createLogger, exitAfterLogging } from './logger';
  const logger = createLogger('test', 'info');
  const steps = {
    info: (text) => logger.info(text),
    fill: () => Array.from({ length: 1000 }, () => logger.info('x'.repeat(4000))),
    fatal: (text) => logger.fatal(text),
    // With one thread for files this write comes after those of the log.
    written: () => new Promise((resolve) => write(1, Buffer.alloc(0), resolve)),
    stdout: (path) => openSync(path, 'w', closeSync(1)),
    exit: () => exitAfterLogging(logger, 3),
  };
  process.on('message', async ([step, text]) => {
    await steps[step](text);
    process.send((await register.getSingleMetric('log_lines_dropped_total').get()).values[0].value);
  });`);

const children: ChildProcess[] = [];

function start() {
  const child = spawn(process.execPath, ['-e', PROGRAM], { stdio: ['ignore', 'pipe', 'inherit', 'ipc'] }) as ChildProcessByStdio<
    null,
    Readable,
    null
  >;
  children.push(child);
  const logs = async (bytes: number) => {
    child.send(bytes);
    const [metric] = (await once(child, 'message')) as [{ values: { value: number }[] }];
    return metric.values[0]?.value;
  };
  const exit = async () => {
    const exited = once(child, 'exit');
    child.send('exit');
    const [code, signal] = (await exited) as [number | null, string | null];
    return code ?? signal;
  };
  return { child, logs, exit };
}

function startTold(stdout: 'pipe' | number) {
  const env = { ...process.env, UV_THREADPOOL_SIZE: '1' };
  const child = spawn(process.execPath, ['-e', TOLD], { env, stdio: ['ignore', stdout, 'inherit', 'ipc'] });
  children.push(child);
  const tell = async (...step: [string, string?]) => {
    child.send(step);
    const [dropped] = (await once(child, 'message')) as [number];
    return dropped;
  };
  return { child, tell, exited: once(child, 'exit') };
}

describe('the log', () => {
  it('has of an error what names it, and no values of its statement', async () => {
    const { stdout } = spawn(process.execPath, ['-e', FAILED], { stdio: ['ignore', 'pipe', 'inherit'] });
    const line = await text(stdout);
    const { err } = JSON.parse(line) as { err: Record<string, unknown> };
    expect(Object.keys(err)).toEqual(['type', 'message', 'stack', 'code']);
    expect(err).toMatchObject({ code: '23505', stack: expect.stringContaining('caused by: Error: why') as string });
    expect(line).not.toContain('canary');
  });

  afterEach(() => children.splice(0).forEach((child) => child.kill('SIGKILL')));

  it('does not block a process whose stdout is not read, and counts dropped lines', async () => {
    const { logs } = start();
    expect(await logs(2000)).toBeGreaterThan(1000);
  });

  it('does not keep a process whose stdout is not read', async () => {
    const { logs, exit } = start();
    await logs(2000);
    expect(await exit()).toBe('SIGKILL');
  });

  it('does not keep a process that ends by an uncaught error while stdout is not read', async () => {
    const { tell, exited } = startTold('pipe');
    await tell('fill');
    await tell('fatal', 'an uncaught error');
    await tell('exit');
    expect(await exited).toEqual([null, 'SIGKILL']);
  });

  describe('on a stdout that takes nothing, such as a file on a full disk', () => {
    const startFull = () => startTold(openSync(__filename, 'r'));

    it('keeps its lines until there is room', async () => {
      const { tell, exited } = startFull();
      for (const text of ['first', 'second']) await tell('info', text).then(() => tell('written'));
      await tell('fatal', 'third');
      const path = join(mkdtempSync(join(tmpdir(), 'log-')), 'stdout');
      await tell('stdout', path);
      await tell('info', 'fourth');
      await tell('exit');
      expect(await exited).toEqual([3, null]);
      const lines = readFileSync(path, 'utf8').trim().split('\n');
      expect(lines.map((line) => (JSON.parse(line) as { msg: string }).msg)).toEqual(['first', 'second', 'third', 'fourth']);
    });

    it('does not keep a process that ends', async () => {
      const { tell, exited } = startFull();
      await tell('fatal', 'an uncaught error');
      await tell('exit');
      expect(await exited).toEqual([3, null]);
    });
  });

  it('counts its lines as dropped when the reader of stdout has gone', async () => {
    const { child, tell } = startTold('pipe');
    child.stdout?.destroy();
    await tell('info', 'nobody reads it');
    await tell('written');
    expect(await tell('info', 'nor this')).toBe(1);
  });

  it('is complete and in order when the process exits', async () => {
    const { child, logs, exit } = start();
    const output = text(child.stdout);
    expect(await logs(10)).toBe(0);
    expect(await exit()).toBe(3);
    const lines = (await output).trim().split('\n');
    expect(lines.map((line) => (JSON.parse(line) as { line: number }).line)).toEqual(Array.from({ length: LINES }, (_, n) => n));
  });

  it('has one line for each entry, also for readers that treat other characters as line ends', async () => {
    const entry = { given: 'a\n\r\v\f\u0085\u2028\u2029b' };
    const program = programOf(`
      import { createLogger, exitAfterLogging } from './logger';
      const logger = createLogger('test', 'info');
      logger.info(${JSON.stringify(entry)});
      exitAfterLogging(logger, 0);`);
    const child = spawn(process.execPath, ['-e', program], { stdio: ['ignore', 'pipe', 'inherit'] });
    const [line, ...rest] = (await text(child.stdout)).split(/[\n\r\v\f\u0085\u2028\u2029]/);
    expect(rest).toEqual(['']);
    expect(JSON.parse(line)).toMatchObject(entry);
  });
});
