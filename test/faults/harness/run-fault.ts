import { eventually } from '@app/testing/eventually';
import { report } from '@app/testing/report';
import type { ServiceProcess } from '@app/testing/system/service-process';
import { Cluster, unsettledIn, type ClusterOptions } from './cluster';
import { Random, seedOfRun } from './random';
import { verify, type Verdict } from './verify';
import { Workload } from './workload';

/** Longest allowed time from the end of a fault to a working system. */
const RECOVERY_MS = 10_000;
/** The system counts as working after this number of consecutive answers of 200 to requests after the fault. */
const HEALTHY_STREAK = 30;

/** A start takes most of a processor. On a slow machine it takes longer, and fewer calls fit beside it. */
const USUAL_START_MS = 600;

export interface FaultContext {
  cluster: Cluster;
  workload: Workload;
  random: Random;
}

export interface Fault {
  name: string;
  /** Injects the fault, and resolves when it has ended, optionally with figures for the matrix. */
  inject(context: FaultContext): Promise<string | void>;
  /** Allowed statuses during this fault, besides 200; 0 is a lost connection. Default 503 and 504. */
  allowed?: number[];
  /** A status that this fault must cause. */
  expected?: number;
  /** Least share of 200 among calls while the machine was not busy. */
  share?: number;
  ratePerSecond?: number;
  /** Whether the rate is lower on a machine where a writer takes longer than {@link USUAL_START_MS} to start: by as much. */
  perStart?: boolean;
  /** Number of requests that are sent at a time. Default 1. */
  burst?: number;
  /** Error-level log lines that are allowed during this fault. */
  expectedErrors?: RegExp;
}

/** Starts one cluster, and runs each fault as a test on it. */
export function describeFaults(title: string, faults: Fault[], options: ClusterOptions = {}): void {
  describe(title, () => {
    const seed = seedOfRun();
    let cluster: Cluster;

    beforeAll(async () => {
      cluster = await Cluster.start(new Random(seed), options);
    });
    afterAll(() => cluster?.remove(), 60_000);

    it.each(faults.map((fault) => [fault.name, fault] as const))(
      '%s',
      async (_name, fault) => {
        // Report violations with the seed, which repeats the same choices.
        const violations = await runFault(cluster, fault, Random.for(seed, fault.name)).catch((error: unknown) => [error]);
        expect({ FAULT_SEED: seed, violations }).toEqual({ FAULT_SEED: seed, violations: [] });
      },
      600_000,
    );

    it('stops in order, and leaves nothing in the queues', async () => {
      expect(await Promise.all(cluster.nodes.map(({ process }) => process.stop('SIGTERM')))).toEqual(cluster.nodes.map(() => 0));
      // Without consumers, unacknowledged messages are ready again and count too.
      expect(await unsettledIn(cluster.environment.AMQP_URL)).toEqual([]);
    });
  });
}

/** @returns the violated guarantees */
export async function runFault(cluster: Cluster, fault: Fault, random: Random): Promise<string[]> {
  const workload = new Workload(cluster, random, fault.name, await rateOf(fault, cluster), fault.burst);
  const violations: string[] = [];
  const logged = cluster.nodes.map(({ process }) => process.output.length);
  workload.start();
  let recoveryMs: number | undefined;
  let figures: string | void = undefined;
  try {
    await eventually(() => workload.count(200) >= HEALTHY_STREAK);
    figures = await fault.inject({ cluster, workload, random });
    recoveryMs = await recovery(cluster, workload);
  } catch (error) {
    violations.push(error instanceof Error ? (error.stack ?? error.message) : String(error));
  }
  await workload.stop();
  await eventually(async () => (await cluster.waiting('commands')) === 0, 30_000).catch(() =>
    violations.push('the queues are not drained'),
  );
  let verdict: Verdict;
  try {
    verdict = await verify(cluster, workload);
  } catch (error) {
    // Earlier violations are the likely cause.
    return [...violations, String(error), ...(await notReady(cluster)), `the journal: ${workload.journal.path}`];
  }
  const { lost, duplicated, unasked, late, malformed, statuses, share, asked } = verdict;
  for (const [what, list] of Object.entries({ lost, duplicated, unasked, late, malformed }))
    if (list.length > 0) violations.push(`${list.length} ${what}: ${list.slice(0, 5).join('; ')}`);

  const allowed = new Set([200, ...(fault.allowed ?? [503, 504])].map(String));
  for (const status of Object.keys(statuses)) if (!allowed.has(status)) violations.push(`${statuses[status]} answers ${status}`);
  if (fault.expected && !statuses[fault.expected]) violations.push(`no answer ${fault.expected}`);
  if (share < (fault.share ?? 0)) violations.push(`${(share * 100).toFixed(2)} % of the answers are 200`);
  cluster.nodes.forEach(({ process }, index) => violations.push(...surprises(process, logged[index] ?? 0, fault.expectedErrors)));
  const dead = await cluster.waiting('dead');
  if (dead > 0) violations.push(`${dead} dead letters`);

  const of = (status: number) => statuses[status] ?? 0;
  report({
    fault: fault.name,
    asked,
    200: of(200),
    503: of(503),
    504: of(504),
    'no answer': of(0),
    other: asked - of(200) - of(503) - of(504) - of(0),
    lost: lost.length,
    duplicated: duplicated.length,
    unasked: unasked.length,
    late: late.length,
    'recovery (s)': recoveryMs === undefined ? 'none' : (recoveryMs / 1000).toFixed(1),
    figures,
  });
  if (violations.length === 0) workload.journal.remove();
  else violations.push(`the journal: ${workload.journal.path}`);
  return violations;
}

/** Waits for the recovery. @returns milliseconds from now until calls were answered normally again */
export async function recovery(cluster: Cluster, workload: Workload): Promise<number> {
  const healedAt = performance.now();
  const firstOfStreak = await eventually(() => {
    const since = workload.statuses.filter(({ askedAt }) => askedAt >= healedAt);
    const lastFailure = since.findLastIndex(({ status }) => status !== undefined && status !== 200);
    const streak = since.slice(lastFailure + 1).filter(({ status }) => status === 200);
    return streak.length >= HEALTHY_STREAK ? streak[0] : undefined;
  }, RECOVERY_MS + 5000);
  await Promise.all(cluster.nodes.map(({ process }) => process.untilReady()));
  const ms = (firstOfStreak?.askedAt ?? Infinity) - healedAt;
  if (ms > RECOVERY_MS) throw new Error(`healthy again only after ${ms.toFixed()} ms`);
  return ms;
}

async function rateOf({ ratePerSecond, perStart }: Fault, { writers: [{ process }] }: Cluster): Promise<number | undefined> {
  if (ratePerSecond === undefined || !perStart) return ratePerSecond;
  await process.stop('SIGTERM');
  const from = performance.now();
  await process.start();
  return ratePerSecond * Math.min(1, USUAL_START_MS / (performance.now() - from));
}

async function notReady(cluster: Cluster): Promise<string[]> {
  const reports = cluster.nodes.map(async ({ process }) => {
    const { body } = await process.health('ready').catch((error: unknown) => ({ body: { status: String(error) } }));
    return body.status === 'ok' ? [] : [`${process.app} is not ready: ${JSON.stringify(body)}`];
  });
  return (await Promise.all(reports)).flat();
}

function surprises({ app, exitCode, output }: ServiceProcess, from: number, expected?: RegExp): string[] {
  const errors = output.slice(from).filter((line) => /"level":[56]0/.test(line) || !line.startsWith('{'));
  const unexpected = errors.filter((line) => !expected?.test(line));
  return [
    ...(exitCode === undefined ? [] : [`${app} exited with ${exitCode}`]),
    ...unexpected.slice(0, 3).map((line) => `${app} logged ${line.slice(0, 500)}`),
  ];
}

/** Duration of a fault. Do not use it to wait for an event. */
export const lasting = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
