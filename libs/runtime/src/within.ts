/** Longest time of a timer of Node, in milliseconds: one with a longer time ends at once. */
export const LONGEST_MS = 2 ** 31 - 1;

/**
 * Waits for a promise, at most this many milliseconds (Infinity: some weeks), and without time left for one that has settled already.
 *
 * @returns whether it has settled by then; its error is ignored
 */
export async function within(milliseconds: number, promise: Promise<unknown>): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const tooLong = new Promise<false>(
    (resolve) => (timer = setTimeout(() => resolve(false), Math.min(Math.max(0, milliseconds), LONGEST_MS))),
  );
  const settled = promise.then(
    () => true,
    () => true,
  );
  try {
    return await Promise.race([settled, tooLong]);
  } finally {
    clearTimeout(timer);
  }
}
