/**
 * Waits for a promise, at most this many milliseconds, and without time left for one that has settled already.
 *
 * @returns whether it has settled by then; its error is ignored
 */
export async function within(milliseconds: number, promise: Promise<unknown>): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const tooLong = new Promise<false>((resolve) => (timer = setTimeout(() => resolve(false), Math.max(0, milliseconds))));
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
