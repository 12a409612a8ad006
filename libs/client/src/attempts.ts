import { Backoff } from '@app/amqp/connection/backoff';
import { within } from '@app/runtime/within';
import { ApiError, PASSING } from '@app/contracts/error';

/**
 * Time that a further attempt gets at least, in milliseconds: a busy broker needs as much. With less its outcome may be unknown, which would hide why
 * the one before has failed.
 */
const LEAST_MS = 100;

export interface Attempts {
  /** Time from now to the deadline, in milliseconds. */
  timeoutMs: number;
  /** When aborted, no further attempt is made. */
  signal: AbortSignal;
  /** Resolves with false when the broker cannot be used within `timeoutMs` milliseconds. */
  whenReady: (timeoutMs: number) => Promise<boolean>;
  /** The reason why the broker cannot be used. */
  whyNot: () => ApiError;
}

/**
 * Repeats attempts until one succeeds, one fails permanently, or the deadline passes. Once an attempt may have succeeded, or may still, a later
 * error that depends on the moment is not reported, because it would claim that nothing was done.
 *
 * @param once makes one attempt, within `timeoutMs` milliseconds
 * @throws ApiError UNAVAILABLE: nothing was done. DEADLINE_EXCEEDED: unknown. Any other status: as thrown by `once`
 */
export async function attempt<T>({ timeoutMs, signal, whenReady, whyNot }: Attempts, once: (timeoutMs: number) => Promise<T>) {
  const deadline = performance.now() + timeoutMs;
  const left = () => deadline - performance.now();
  const isOver = () => left() < LEAST_MS || signal.aborted;
  const backoff = new Backoff(50, 1000);
  let unknown: ApiError | undefined;
  let failure: ApiError | undefined;
  for (;;) {
    if (await whenReady(left())) {
      // The broker may be back in the last moment.
      if (failure && isOver()) throw unknown ?? failure;
      try {
        return await once(Math.max(1, left()));
      } catch (error) {
        if (!(error instanceof ApiError)) throw error;
        if (error.status === 'DEADLINE_EXCEEDED') unknown = error;
        else if (error.status !== 'UNAVAILABLE') throw unknown && PASSING.has(error.status) ? unknown : error;
        failure = error;
      }
    } else failure = whyNot();
    // No AbortSignal.any(): on Node 20 the client's signal would keep a part of each for ever.
    await within(left(), backoff.wait(signal));
    if (isOver()) throw unknown ?? failure;
  }
}
