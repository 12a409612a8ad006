/** Waits after failures grow twofold from the first to the second, in milliseconds. */
const BACKOFF_MS = [100, 5000] as const;

/**
 * How long to wait, in milliseconds. Half of it is random, so that many processes do not come as one.
 *
 * @param failures in a row so far, from 1
 */
export function waitAfter(failures: number): number {
  const [first, most] = BACKOFF_MS;
  const ceiling = Math.min(most, first * 2 ** (failures - 1));
  return ceiling / 2 + (Math.random() * ceiling) / 2;
}
