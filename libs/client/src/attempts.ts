import { Backoff } from '@app/amqp/backoff';
import { ApiError } from '@app/contracts/error';

export interface Attempts {
  /** From now to the deadline, in milliseconds. */
  timeoutMs: number;
  /** Aborted: no further attempt is made. */
  signal: AbortSignal;
  /** Resolves with false when the broker cannot be used within so many milliseconds. */
  whenReady: (timeoutMs: number) => Promise<boolean>;
  /** Why it cannot. */
  whyNot: () => ApiError;
}

/**
 * Tries until it works, fails for good, or the deadline comes. As soon as one attempt may have worked, a later failure does not say that
 * nothing was done.
 *
 * @param once one attempt within so many milliseconds
 * @throws ApiError UNAVAILABLE: certainly nothing was done. DEADLINE_EXCEEDED: unknown. Any other status: as `once` threw it
 */
export async function attempt<T>({ timeoutMs, signal, whenReady, whyNot }: Attempts, once: (timeoutMs: number) => Promise<T>) {
  const deadline = performance.now() + timeoutMs;
  const left = () => deadline - performance.now();
  const backoff = new Backoff(50, 1000);
  let unknown: ApiError | undefined;
  for (;;) {
    let failure: ApiError;
    if (await whenReady(left())) {
      try {
        return await once(Math.max(1, left()));
      } catch (error) {
        if (!(error instanceof ApiError)) throw error;
        if (error.status === 'DEADLINE_EXCEEDED') unknown = error;
        else if (error.status !== 'UNAVAILABLE') throw error;
        failure = error;
      }
    } else failure = whyNot();
    if (left() <= 0 || signal.aborted) throw unknown ?? failure;
    await backoff.wait(AbortSignal.any([signal, AbortSignal.timeout(Math.max(1, Math.ceil(left())))]));
  }
}
