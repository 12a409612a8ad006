/** Waits after failures double from the first to the second number, in milliseconds. */
const BACKOFF_MS = [100, 5000] as const;

/**
 * Wait after a failure, in milliseconds. Half of it is random, so that many processes do not retry at once.
 *
 * @param failures number of consecutive failures, from 1
 */
export function waitAfter(failures: number): number {
  const [first, most] = BACKOFF_MS;
  const ceiling = Math.min(most, first * 2 ** (failures - 1));
  return ceiling / 2 + (Math.random() * ceiling) / 2;
}
