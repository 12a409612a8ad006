import { spawnSync } from 'node:child_process';
import { availableParallelism } from 'node:os';
import { report } from '@app/testing/report';
import { Cluster } from './harness/cluster';
import { Load, type LoadOptions } from './harness/load';
import { Random, seedOfRun } from './harness/random';
import { recovery } from './harness/run-fault';
import { verify, type Verdict } from './harness/verify';
import { Workload } from './harness/workload';

const WARM_UP_MS = 20_000;
const PEAK_MS = 10_000;
const OVERLOAD_MS = 60_000;
const OVERLOAD = 5;
const LEAST_GOODPUT = 0.8;
/** Time of a refusal on the processor that gateway and client share, in seconds, measured: the peak fills this processor. */
const REFUSAL_SECONDS = 33e-6;
/** Number of calls that two cores handle in about a tenth of a second. */
const MOST_IN_FLIGHT = '128';
/** One key may hold 61 of 128 places. A closed loop of more calls would be refused, and its refusals would lower the peak. */
const PEAK_IN_FLIGHT = 56;

const FRONT = '0';
const SERVICES = availableParallelism() > 1 ? `1-${availableParallelism() - 1}` : FRONT;
const ALL = `0-${availableParallelism() - 1}`;

/**
 * Gives the gateway and its client their own processors: in a cluster a refusal takes no time from the database, and on one machine the client
 * alone would use a fifth of it. Restricts a process, and the processes that it starts from now on, to these processors. Without taskset it has
 * no effect.
 */
function pin(pid: number, processors: string): void {
  spawnSync('taskset', ['-acp', processors, String(pid)], { stdio: 'ignore' });
}

describe('overload', () => {
  const seed = seedOfRun();
  const random = new Random(seed);
  let cluster: Cluster;

  beforeAll(async () => {
    pin(process.pid, SERVICES);
    cluster = await Cluster.start(random, { env: { gateway: { RATE_LIMIT_PER_SECOND: '0', MAX_IN_FLIGHT: MOST_IN_FLIGHT } } });
    for (const { process: gateway } of cluster.gateways) pin(gateway.pid, FRONT);
  });
  afterAll(async () => {
    await cluster?.remove();
    pin(process.pid, ALL);
  });

  it('five times what it can do, for a minute', async () => {
    // Warm up, because the first calls run code that is not compiled yet.
    const run = (name: string, options: Omit<LoadOptions, 'tenant'>) => {
      pin(process.pid, FRONT);
      const running = Load.run(cluster, name, { tenant: 0, ...options });
      pin(process.pid, SERVICES);
      return running;
    };
    const warmUp = await run('warm up', { inFlight: PEAK_IN_FLIGHT, ms: WARM_UP_MS });
    const peakOf = (name: string) => run(name, { inFlight: PEAK_IN_FLIGHT, ms: PEAK_MS });
    const before = await peakOf('before');
    const ratePerSecond = OVERLOAD * before.goodput;
    const overload = await run('overload', { ratePerSecond, ms: OVERLOAD_MS });
    // The data stored in a minute and other users of the machine change the peak meanwhile.
    const after = await peakOf('after');

    const workload = new Workload(cluster, random, 'recovered');
    workload.start();
    const recoveryMs = await recovery(cluster, workload).finally(() => workload.stop());
    const verdicts: Verdict[] = [];
    for (const load of [warmUp, before, overload, after, workload]) verdicts.push(await verify(cluster, load));
    const sum = (count: (verdict: Verdict) => number) => verdicts.reduce((all, one) => all + count(one), 0);
    const of = (status: number) => sum(({ statuses }) => statuses[status] ?? 0);
    const refusedMs = overload.percentile(99, 429, 503);
    const peak = (before.goodput + after.goodput) / 2;
    const kept = overload.goodput / peak;
    const left = 1 - (overload.count(429, 503) / (OVERLOAD_MS / 1000)) * REFUSAL_SECONDS;
    report({
      fault: `${OVERLOAD} times what it can do, ${OVERLOAD_MS / 1000} s`,
      asked: sum(({ asked }) => asked),
      200: of(200),
      429: of(429),
      503: of(503),
      504: of(504),
      'no answer': of(0),
      lost: sum(({ lost }) => lost.length),
      duplicated: sum(({ duplicated }) => duplicated.length),
      unasked: sum(({ unasked }) => unasked.length),
      late: sum(({ late }) => late.length),
      'recovery (s)': (recoveryMs / 1000).toFixed(1),
      figures: `peak ${before.goodput.toFixed()} and ${after.goodput.toFixed()}/s, of them ${(kept * 100).toFixed()} % kept (refusals leave ${(left * 100).toFixed()} %); 99 % of refusals within ${refusedMs.toFixed()} ms`,
    });
    expect({
      FAULT_SEED: seed,
      broken: verdicts.flatMap(({ lost, duplicated, unasked, late, malformed }) =>
        [...lost, ...duplicated, ...unasked, ...late, ...malformed].slice(0, 5),
      ),
      enough: kept >= LEAST_GOODPUT * left || { kept, left },
      withoutRetryAfter: overload.withoutRetryAfter,
      others: overload.asked - overload.count(200, 429, 503),
      refusedAtPeak: before.count(429, 503) + after.count(429, 503),
    }).toEqual({ FAULT_SEED: seed, broken: [], enough: true, withoutRetryAfter: 0, others: 0, refusedAtPeak: 0 });
    for (const load of [warmUp, before, overload, after, workload]) load.journal.remove();
  }, 300_000);
});
