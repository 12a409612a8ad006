import * as fc from 'fast-check';

/** Number of cases: a short default, unless the environment sets another. */
export const amountOf = (
  name: 'SECURITY_HTTP_CASES' | 'SECURITY_QUEUE_CASES' | 'SECURITY_ISOLATION_RUNS',
  short: number,
): number => Number(process.env[name]) || short;

/** SECURITY_SEED, or a new one. */
export const SEED = Number(process.env.SECURITY_SEED) || Math.floor(Math.random() * 2 ** 31) + 1;

/** Cases generated at a time. Each lot has its own seed, so that a failing case can be replayed without earlier lots. */
const LOT = 500;
/** Time limit for shrinking; then the best result so far is reported. A case that fails by a timeout is slow to shrink. */
const SHRINKING_MS = 30_000;

interface Campaign<Case> {
  /** Test to run for a replay. */
  title: string;
  cases: fc.Arbitrary<Case>;
  amount: number;
  /** Number of cases in flight. */
  concurrency: number;
  /** @throws Error with the problem of the case */
  run: (one: Case) => Promise<void>;
  afterLot?: () => void;
}

/**
 * Runs generated cases concurrently, which fast-check alone does not do. The first failing case is run again alone and shrunk.
 *
 * @throws Error with the seed and path of that case, and the shrunk case
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

/** Bytes as readable text. */
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

/** Shrinks a failing case. Resolves when it does not fail any more. */
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

/** Counts outcomes by name, for the report: a suite whose requests are all refused proves little. */
export class Tally {
  private readonly counts = new Map<string, number>();

  add(name: string): void {
    this.counts.set(name, (this.counts.get(name) ?? 0) + 1);
  }

  /** Sum of all names with this prefix. */
  of(prefix: string): number {
    return [...this.counts].reduce((sum, [name, count]) => (name.startsWith(prefix) ? sum + count : sum), 0);
  }

  toJSON(): Record<string, number> {
    return Object.fromEntries([...this.counts].sort(([a], [b]) => (a < b ? -1 : 1)));
  }
}
