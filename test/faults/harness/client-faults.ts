import { connect, type Socket } from 'node:net';
import { eventually } from '@app/testing/eventually';
import type { Cluster } from './cluster';
import { Load, percentile } from './load';
import { Noise } from './noise';
import type { Fault } from './run-fault';
import type { Workload } from './workload';

/** Other clients must be answered within this time, without the noise of the machine. The faulty client uses a part of it. */
const UNHARMED_MS = 1000;

/** A process that nobody attacks shows the delay by the machine: the gateway's own delay is what the others must not notice. */
const watchMachine = ({ users }: Cluster) => new Noise({ gateway: { url: `http://127.0.0.1:${users.process.healthPort}` } });

/** Percentile of the times of all calls since then, in milliseconds. */
function p99Since(from: number, workload: Workload, machine: Noise): number {
  const times = workload
    .since(from)
    .map(({ askedAt, answeredAt = Infinity }) => answeredAt - askedAt - machine.since(askedAt, answeredAt));
  return Math.max(0, percentile(99, times));
}

/** Credentials of the tenant that no workload uses. */
const MISBEHAVING = 2;

/** Limits of the gateway: 10 s for the headers, 15 s for the request; checked every second. */
const CUT_WITHIN_MS = 20_000;

/** Connections that are held open by sending nothing or one byte a second, in the headers or in the body. */
export const slowConnections = (count: number): Fault => ({
  name: `${count} connections that send nothing, or one byte a second`,
  allowed: [],
  async inject({ cluster, workload }) {
    const from = performance.now();
    const machine = watchMachine(cluster);
    const answers: string[] = [];
    let open = 0;
    for (let number = 0; number < count; number++) {
      // Not all at once, because requests with credentials would exceed the rate of their tenant.
      if (number % 100 === 99) await workload.asks(15);
      open++;
      slowly(cluster, number, (answer) => {
        open--;
        answers.push(answer.slice(0, 12));
      });
    }
    await eventually(() => open === 0, CUT_WITHIN_MS + 10_000, 100);
    const took = performance.now() - from;
    if (took > CUT_WITHIN_MS) throw new Error(`cut only after ${took.toFixed()} ms`);
    const others = answers.filter((answer) => answer !== 'HTTP/1.1 408');
    if (others.length > 0) throw new Error(`${others.length} were not answered 408 but: ${[...new Set(others)].join()}`);
    const p99 = p99Since(from, workload, machine);
    machine.stop();
    if (p99 > UNHARMED_MS) throw new Error(`1 % of the others waited longer than ${p99.toFixed()} ms`);
    return `the others within ${p99.toFixed()} ms (99 %)`;
  },
});

function slowly(cluster: Cluster, number: number, onEnd: (answer: string) => void): Socket {
  const { port } = new URL(cluster.gatewayUrl);
  const socket = connect({ host: '127.0.0.1', port: Number(port) });
  let answer = '';
  const credentials = Object.entries(cluster.tenants[MISBEHAVING]).map(([name, value]) => `${name}: ${value}\r\n`);
  const lines = `POST /v1/notifications/add HTTP/1.1\r\nhost: slow\r\n${credentials.join('')}content-type: application/json\r\n`;
  const first = ['', `${lines}x-slow: `, `${lines}content-length: 1000\r\n\r\n`][number % 3];
  socket.write(first);
  const drip = first === '' ? undefined : setInterval(() => socket.write('a'), 1000);
  socket.on('data', (bytes) => (answer += bytes.toString()));
  socket.on('error', () => undefined);
  socket.on('close', () => {
    clearInterval(drip);
    onEnd(answer);
  });
  return socket;
}

/** @param limit allowed calls per second of a tenant */
export const greedyTenant = (limit: number, ms: number): Fault => ({
  name: `one tenant at ten times its rate, ${ms / 1000} s`,
  allowed: [],
  async inject({ cluster, random, workload }) {
    const from = performance.now();
    const options = { tenant: MISBEHAVING, ratePerSecond: 10 * limit, ms };
    const machine = watchMachine(cluster);
    const load = await Load.run(cluster, `greedy ${random.word()}`, options);
    const p99 = p99Since(from, workload, machine);
    machine.stop();
    const problems = [
      load.count(200, 429) < load.asked && `${load.asked - load.count(200, 429)} answers are neither 200 nor 429`,
      load.count(429) === 0 && 'none is 429',
      // The first and the last second of the limiter may be partial.
      load.count(200) > limit * (ms / 1000 + 2) && `${load.count(200)} answers are 200`,
      load.withoutRetryAfter > 0 && `${load.withoutRetryAfter} refusals without Retry-After`,
      p99 > UNHARMED_MS && `1 % of the others waited longer than ${p99.toFixed()} ms`,
    ].filter(Boolean);
    load.journal.remove();
    if (problems.length > 0) throw new Error(problems.join('; '));
    return `${load.count(200)} of ${load.asked} of its calls 200, the others 429; other tenants within ${p99.toFixed()} ms (99 %)`;
  },
});
