import { setTimeout as sleep } from 'node:timers/promises';

/**
 * Waits for a condition. One that throws does not hold yet.
 * @param {string} what for the error when it does not come
 * @param {number} withinMs
 * @param {() => Promise<boolean>} condition
 */
export async function eventually(what, withinMs, condition) {
  let problem;
  for (const since = Date.now(); Date.now() - since < withinMs; await sleep(20)) {
    try {
      if (await condition()) return;
      problem = undefined;
    } catch (error) {
      problem = error;
    }
  }
  throw new Error(`not within ${withinMs / 1000} s: ${what}`, { cause: problem });
}
