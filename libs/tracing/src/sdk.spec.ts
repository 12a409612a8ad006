import { execFile, execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { createServer, type Server } from 'node:net';
import type { AddressInfo } from 'node:net';
import { promisify } from 'node:util';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { SpanKind } from '@opentelemetry/api';
import { buildSync } from 'esbuild';
import { OtlpReceiver } from '@app/testing/otlp-receiver';
import { startSdk } from './sdk';
import { startSpan, useTracing } from './tracing';
import type { TracingConfig } from './tracing-config';

const PROCESS = { name: 'gateway', version: '1' };
const CONFIG: TracingConfig = { otlpProtocol: 'http/protobuf', tracesSampler: 'always_on', tracesRatio: 1 };
const MIB = 2 ** 20;

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;
const memory = () => {
  collect();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
};

describe(startSdk.name, () => {
  let silent: Server;
  let url: string;
  beforeAll(async () => {
    silent = createServer((socket) => void socket.resume().on('error', () => undefined)).listen(0, '127.0.0.1');
    await once(silent, 'listening');
    url = `http://127.0.0.1:${(silent.address() as AddressInfo).port}`;
  });
  afterAll(() => void silent.close());
  afterEach(() => useTracing(undefined));

  it('has at most 16 MiB of spans for a receiver that takes none, and does not wait for its answer', async () => {
    const stop = startSdk(PROCESS, { ...CONFIG, otlpEndpoint: url });
    const value = 'x'.repeat(300);
    const spans = (count: number) => {
      for (let number = 0; number < count; number++)
        startSpan(`span ${number}`, SpanKind.INTERNAL)
          ?.setAttributes(
            Object.fromEntries(Array.from({ length: 8 }, (_, index) => [`attribute.${index}`, `${value} ${number}`])),
          )
          .end();
    };
    spans(1);
    const before = memory();
    spans(20_000);
    expect(memory() - before).toBeLessThan(16 * MIB);
    const from = performance.now();
    await stop();
    // A request is given up after 10 s.
    expect(performance.now() - from).toBeLessThan(9000);
  });

  it.each([
    ['always_on', 1, 100],
    ['always_off', 1, 0],
    ['parentbased_always_on', 1, 100],
    ['parentbased_always_off', 1, 0],
    ['traceidratio', 0, 0],
    ['parentbased_traceidratio', 1, 100],
  ] as const)('obeys the sampler %s with %d', async (tracesSampler, tracesRatio, recorded) => {
    const stop = startSdk(PROCESS, { ...CONFIG, otlpEndpoint: url, tracesSampler, tracesRatio });
    const spans = Array.from({ length: 100 }, () => startSpan('span', SpanKind.INTERNAL));
    expect(spans.filter((span) => span?.isRecording())).toHaveLength(recorded);
    await stop();
  });

  it('samples about the share that is asked for', async () => {
    const stop = startSdk(PROCESS, { ...CONFIG, otlpEndpoint: url, tracesSampler: 'parentbased_traceidratio', tracesRatio: 0.1 });
    const spans = Array.from({ length: 5000 }, () => startSpan('span', SpanKind.INTERNAL));
    const { length } = spans.filter((span) => span?.isRecording());
    expect(length).toBeGreaterThan(350);
    expect(length).toBeLessThan(650);
    await stop();
  });
});

/** A program with the sources as they are now: what is in dist/ may be older, or missing. */
const bundled = (contents: string): string =>
  buildSync({
    stdin: { contents, resolveDir: __dirname },
    bundle: true,
    platform: 'node',
    packages: 'external',
    write: false,
  }).outputFiles[0].text;

it.each([
  ['no package of the SDK without a receiver', '', false],
  ['the packages of the SDK with one', 'http://127.0.0.1:9', true],
])('loads %s', (_, otlpEndpoint, expected) => {
  const program = bundled(`
    import '@app/runtime/run-service';
    import { startTracing } from './start-tracing';
    startTracing({ name: 'x', version: '1' }, { ...${JSON.stringify(CONFIG)}, otlpEndpoint: '${otlpEndpoint}' || undefined }).then(() => {
      console.log(Object.keys(require.cache).some((path) => /@opentelemetry.(?!api)/.test(path)));
    });`);
  expect(execFileSync(process.execPath, ['-e', program]).toString().trim()).toBe(String(expected));
});

// In a process of its own, because Jest cannot run the import() of the exporter.
it.each(['http/protobuf', 'http/json'] as const)(
  'sends spans that were serialised apart in one request: %s',
  async (otlpProtocol) => {
    const receiver = await OtlpReceiver.start();
    try {
      const program = bundled(`
      import { startSdk } from './sdk';
      import { startSpan } from './tracing';
      const stop = startSdk(${JSON.stringify(PROCESS)}, ${JSON.stringify({ ...CONFIG, otlpProtocol, otlpEndpoint: receiver.url })});
      for (let number = 0; number < 100; number++) startSpan('span ' + number, 0).setAttribute('text', 'ü ' + number).end();
      stop().then(() => process.exit());`);
      await promisify(execFile)(process.execPath, ['-e', program]);
      expect(receiver.spans.map(({ service, name, attributes }) => [service, name, attributes])).toEqual(
        Array.from({ length: 100 }, (_, number) => ['gateway', `span ${number}`, { text: `ü ${number}` }]),
      );
      expect(receiver.headers).toHaveLength(1);
    } finally {
      await receiver.stop();
    }
  },
);
