/**
 * Waits until a condition holds, where there is no signal to wait for.
 *
 * @param condition a thrown error counts as "not yet"
 * @param timeoutMs rejects after this time, with the last result of the condition
 * @param everyMs interval of the checks
 */
export async function eventually<T>(condition: () => T | Promise<T>, timeoutMs = 60_000, everyMs = 10): Promise<T> {
  const until = performance.now() + timeoutMs;
  for (;;) {
    let last: unknown;
    try {
      const value = await condition();
      if (value) return value;
      last = value;
    } catch (error) {
      last = error;
    }
    if (performance.now() > until) throw new Error(`Not within ${timeoutMs} ms: ${String(last)}`, { cause: last });
    await new Promise((resolve) => setTimeout(resolve, everyMs));
  }
}
