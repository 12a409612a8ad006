import { ApiError } from '@app/contracts/error';
import { isDatabaseAway, isTransient } from './errors';

/** Most attempts of one call. Each further attempt follows a lost race, and the winner of the race has committed by then. */
const MAX_TRIES = 5;

/**
 * Tries until an attempt has an outcome. An attempt without one has changed nothing, so UNAVAILABLE is correct after the last one.
 *
 * @param deadline  epoch milliseconds; undefined when no caller waits
 * @param nothingDone text of UNAVAILABLE
 * @throws ApiError UNAVAILABLE; the error of the driver when the database is away, because then the outcome is unknown
 */
export async function attempt<Outcome>(
  deadline: number | undefined,
  nothingDone: string,
  tryOnce: () => Promise<Outcome | undefined>,
): Promise<Outcome> {
  const unavailable = (options?: ErrorOptions) => new ApiError('UNAVAILABLE', nothingDone, undefined, options);
  for (let tries = 0; tries < MAX_TRIES && !(deadline !== undefined && Date.now() > deadline); tries++) {
    try {
      const outcome = await tryOnce();
      if (outcome !== undefined) return outcome;
    } catch (error) {
      // If the database is away, the outcome of the statement is unknown: pass the error on, and the message is redelivered.
      if (isDatabaseAway(error) || !isTransient(error)) throw error;
      throw unavailable({ cause: error });
    }
  }
  throw unavailable();
}
