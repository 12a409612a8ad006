import { spawn, type ChildProcessByStdio } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { transformFileSync } from '@swc/core';

/** The logger as it is now: what is in dist/ may be older. */
const loaded = (file: string, ours = '{}') => {
  const { code } = transformFileSync(join(__dirname, file), { sourceMaps: false });
  return `((load, exports) => {
    const require = (name) => (${ours})[name] ?? load(name);
    ${code};
    return exports;
  })(require, {})`;
};
const TRACING = `((context, ids) => ${loaded('../../tracing/src/tracing.ts', "{ './trace-context': context, './ids': ids }")})(
  ${loaded('../../tracing/src/trace-context.ts')}, ${loaded('../../tracing/src/ids.ts')})`;
const OURS = "{ './metrics': metrics, '../../tracing/src/tracing': tracing }";
const LOGGER = `((metrics, tracing) => ${loaded('logger.ts', OURS)})(${loaded('metrics.ts')}, ${TRACING})`;
const LINES = 20_000;

/** Writes log lines, and reports its progress on a channel other than stdout. */
const PROGRAM = `
  const { createLogger, exitAfterLogging } = ${LOGGER};
  const { register } = require('prom-client');
  const logger = createLogger('test', 'info');
  process.once('message', async (bytes) => {
    for (let line = 0; line < ${LINES}; line++) logger.info({ line, filler: 'x'.repeat(bytes) });
    process.send(await register.getSingleMetric('log_lines_dropped_total').get());
    process.once('message', () => exitAfterLogging(logger, 3));
  });`;

function start() {
  const child = spawn(process.execPath, ['-e', PROGRAM], { stdio: ['ignore', 'pipe', 'inherit', 'ipc'] }) as ChildProcessByStdio<
    null,
    Readable,
    null
  >;
  const logs = async (bytes: number) => {
    child.send(bytes);
    const [metric] = (await once(child, 'message')) as [{ values: { value: number }[] }];
    return metric.values[0]?.value;
  };
  const exit = async () => {
    const exited = once(child, 'exit');
    child.send('exit');
    return ((await exited) as [number])[0];
  };
  return { child, logs, exit };
}

describe('the log', () => {
  it('does not block a process whose stdout is not read, and counts dropped lines', async () => {
    const { child, logs } = start();
    expect(await logs(2000)).toBeGreaterThan(1000);
    child.kill('SIGKILL');
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
    const program = `
      const { createLogger, exitAfterLogging } = ${LOGGER};
      const logger = createLogger('test', 'info');
      logger.info(${JSON.stringify(entry)});
      exitAfterLogging(logger, 0);`;
    const child = spawn(process.execPath, ['-e', program], { stdio: ['ignore', 'pipe', 'inherit'] });
    const [line, ...rest] = (await text(child.stdout)).split(/[\n\r\v\f\u0085\u2028\u2029]/);
    expect(rest).toEqual(['']);
    expect(JSON.parse(line)).toMatchObject(entry);
  });
});
