/** Shortest and longest pause between two checks. */
const FIRST_MS = 10;
const MOST_MS = 100;

/**
 * Waits until a condition holds, where there is no signal to wait for.
 *
 * @param condition a thrown error counts as "not yet"
 * @param timeoutMs rejects after this time, with the last result of the condition
 * @param everyMs interval of the checks. By default a tenth of the time waited, within limits: a check takes processor time of what is waited for
 */
export async function eventually<T>(condition: () => T | Promise<T>, timeoutMs = 60_000, everyMs?: number): Promise<T> {
  const since = performance.now();
  for (;;) {
    let last: unknown;
    try {
      const value = await condition();
      if (value) return value;
      last = value;
    } catch (error) {
      last = error;
    }
    const waitedMs = performance.now() - since;
    if (waitedMs > timeoutMs) throw new Error(`Not within ${timeoutMs} ms: ${String(last)}`, { cause: last });
    const pauseMs = everyMs ?? Math.min(MOST_MS, Math.max(FIRST_MS, waitedMs / 10));
    await new Promise((resolve) => setTimeout(resolve, pauseMs));
  }
}
