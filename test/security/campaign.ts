import { appendFileSync } from 'node:fs';
import * as fc from 'fast-check';

/** How much of each is done: a short share, unless the environment asks for more. */
export const amountOf = (
  name: 'SECURITY_HTTP_CASES' | 'SECURITY_QUEUE_CASES' | 'SECURITY_ISOLATION_RUNS',
  short: number,
): number => Number(process.env[name]) || short;

/** SECURITY_SEED, or a new one. */
export const SEED = Number(process.env.SECURITY_SEED) || Math.floor(Math.random() * 2 ** 31) + 1;

/** Cases made at a time. Each lot has a seed of its own, so that a failing case is replayed without those before it. */
const LOT = 500;
/** What is found until then is told: a case that fails by waiting is slow to shrink. */
const SHRINKING_MS = 30_000;

interface Campaign<Case> {
  /** Which test to run for a replay. */
  title: string;
  cases: fc.Arbitrary<Case>;
  amount: number;
  /** How many of them are on their way at a time. */
  concurrency: number;
  /** @throws what is wrong with the way in which the case ended */
  run: (one: Case) => Promise<void>;
  afterLot?: () => void;
}

/**
 * Runs generated cases many at a time, which a property of fast-check alone does not. The first that fails is run once more alone and
 * shrunk.
 *
 * @throws with the seed and path of that case, and what it was shrunk to
 */
export async function runCampaign<Case>(campaign: Campaign<Case>): Promise<void> {
  const { cases, amount, run, afterLot } = campaign;
  if (process.env.SECURITY_PATH) return shrink(campaign, SEED, process.env.SECURITY_PATH);
  for (let done = 0, seed = SEED; done < amount; done += LOT, seed++) {
    const lot = fc.sample(cases, { seed, numRuns: Math.min(LOT, amount - done) });
    const failure = await firstFailure(lot, campaign.concurrency, run);
    if (failure) {
      await shrink(campaign, seed, String(failure.index));
      throw new Error(`Only once, beside others: ${replay(campaign, seed, failure.index)}\n${shown(lot[failure.index])}`, {
        cause: failure.error,
      });
    }
    afterLot?.();
  }
}

const replay = ({ title }: { title: string }, seed: number, path: string | number) =>
  `SECURITY_SEED=${seed} SECURITY_PATH=${path} npm run test:security -- -t '${title}'`;

/** Bytes as text: what a person reads. */
const shown = (value: unknown): string =>
  JSON.stringify(value, (_, one: unknown) =>
    (one as { type?: unknown } | null)?.type === 'Buffer' ? Buffer.from((one as { data: number[] }).data).toString() : one,
  );

async function firstFailure<Case>(lot: Case[], concurrency: number, run: (one: Case) => Promise<void>) {
  let next = 0;
  let failure: { index: number; error: unknown } | undefined;
  const worker = async () => {
    while (next < lot.length && !failure) {
      const index = next++;
      try {
        await run(lot[index]);
      } catch (error) {
        failure ??= { index, error };
      }
    }
  };
  await Promise.all(Array.from({ length: concurrency }, worker));
  return failure;
}

/** Resolves when the case does not fail any more. */
async function shrink<Case>(campaign: Campaign<Case>, seed: number, path: string): Promise<void> {
  const details = await fc.check(fc.asyncProperty(campaign.cases, campaign.run), {
    seed,
    path,
    numRuns: Number(path.split(':')[0]) + 1,
    interruptAfterTimeLimit: SHRINKING_MS,
  });
  if (!details.failed) return;
  throw new Error(
    `${replay(campaign, seed, details.counterexamplePath ?? path)}\nshrunk ${details.numShrinks} times to ${shown(details.counterexample?.[0])}`,
    { cause: details.errorInstance },
  );
}

/** A line of the report of the full run. */
export function report(row: Record<string, unknown>): void {
  const file = process.env.SECURITY_REPORT;
  if (file) appendFileSync(file, `${JSON.stringify(row)}\n`);
}

/** Counts by a name, for the report: a suite that only ever asks for what is refused proves little. */
export class Tally {
  private readonly counts = new Map<string, number>();

  add(name: string): void {
    this.counts.set(name, (this.counts.get(name) ?? 0) + 1);
  }

  /** Of all names that start so. */
  of(prefix: string): number {
    return [...this.counts].reduce((sum, [name, count]) => (name.startsWith(prefix) ? sum + count : sum), 0);
  }

  toJSON(): Record<string, number> {
    return Object.fromEntries([...this.counts].sort(([a], [b]) => (a < b ? -1 : 1)));
  }
}
