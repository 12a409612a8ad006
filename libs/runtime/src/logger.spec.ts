import { spawn, type ChildProcessByStdio } from 'node:child_process';
import { once } from 'node:events';
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

const children: ChildProcessByStdio<null, Readable, null>[] = [];

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
