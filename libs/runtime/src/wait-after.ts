/** Waits after failures double from the first to the most, in milliseconds. */
const FIRST_MS = 100;
const MOST_MS = 5000;

/**
 * Wait after a failure, in milliseconds. Half of it is random, so that many processes do not retry at once.
 *
 * @param failures number of consecutive failures, from 1
 */
export function waitAfter(failures: number, firstMs = FIRST_MS, mostMs = MOST_MS): number {
  const ceiling = Math.min(mostMs, firstMs * 2 ** (failures - 1));
  return ceiling / 2 + (Math.random() * ceiling) / 2;
}
