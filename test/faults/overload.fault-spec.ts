import { availableParallelism } from 'node:os';
import { Cluster } from './cluster';
import { Load } from './load';
import { Random, seedOfRun } from './random';
import { recovery, report } from './run-fault';
import { verify, type Verdict } from './verify';
import { Workload } from './workload';

const WARM_UP_MS = 20_000;
const PEAK_MS = 10_000;
const OVERLOAD_MS = 60_000;
const OVERLOAD = 5;
const LEAST_GOODPUT = 0.8;
/** What two cores do in about a tenth of a second. */
const MOST_IN_FLIGHT = '128';

const percent = (share: number) => `${(share * 100).toFixed()} %`;

describe('overload', () => {
  const seed = seedOfRun();
  const random = new Random(seed);
  let cluster: Cluster;

  beforeAll(async () => {
    cluster = await Cluster.start(random, { env: { gateway: { RATE_LIMIT_PER_SECOND: '0', MAX_IN_FLIGHT: MOST_IN_FLIGHT } } });
  }, 120_000);
  afterAll(() => cluster?.remove(), 60_000);

  it('five times what it can do, for a minute', async () => {
    // The first calls find code that is not compiled yet.
    const warmUp = await Load.run(cluster, 'warm up', { tenant: 0, inFlight: 64, ms: WARM_UP_MS });
    const peakOf = (name: string) => Load.run(cluster, name, { tenant: 0, inFlight: 64, ms: PEAK_MS });
    const before = await peakOf('before');
    const ratePerSecond = OVERLOAD * before.goodput;
    const overload = await Load.run(cluster, 'overload', { tenant: 0, ratePerSecond, ms: OVERLOAD_MS });
    // What is stored in a minute, and a machine that others use, change the peak meanwhile.
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
    // A client that asks for five times as much takes more of this machine, which it shares with the system.
    const left = (processors: number) => availableParallelism() - processors;
    const share = (kept * left((before.processors + after.processors) / 2)) / left(overload.processors);
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
      figures: `peak ${before.goodput.toFixed()} and ${after.goodput.toFixed()}/s, of them ${percent(kept)} kept, ${percent(share)} of what the client left of the machine; 99 % of refusals within ${refusedMs.toFixed()} ms`,
    });
    expect({
      FAULT_SEED: seed,
      broken: verdicts.flatMap(({ lost, duplicated, unasked, late, malformed }) =>
        [...lost, ...duplicated, ...unasked, ...late, ...malformed].slice(0, 5),
      ),
      enough: share >= LEAST_GOODPUT || { kept, share },
      withoutRetryAfter: overload.withoutRetryAfter,
      others: overload.asked - overload.count(200, 429, 503),
    }).toEqual({ FAULT_SEED: seed, broken: [], enough: true, withoutRetryAfter: 0, others: 0 });
    for (const load of [warmUp, before, overload, after, workload]) load.journal.remove();
  }, 300_000);
});
