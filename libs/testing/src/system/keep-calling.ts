import { setTimeout as sleep } from 'node:timers/promises';

/**
 * Runs several clients that call repeatedly, each after its previous answer. The rate is limited: refusals come at once, and an unlimited loop
 * would exceed the rate limits and make more calls than the test can check.
 *
 * @param perSecond most calls per second, of all clients together
 * @param call gets the number of the client and the number of its call
 * @returns a function that ends it. It resolves when every call has its answer, and rejects with the first call that failed
 */
export function keepCalling(
  clients: number,
  perSecond: number,
  call: (client: number, number: number) => Promise<unknown>,
): () => Promise<void> {
  const everyMs = (1000 * clients) / perSecond;
  let ending = false;
  const client = async (_: unknown, index: number) => {
    for (let number = 0, due = performance.now(); !ending; number++) {
      await call(index, number);
      // Calls missed because of a slow answer are not made up.
      due = Math.max(due + everyMs, performance.now());
      await sleep(Math.max(0, due - performance.now()));
    }
  };
  const calling = Promise.all(Array.from({ length: clients }, client));
  // The function that ends it reports the error.
  calling.catch(() => undefined);
  return async () => {
    ending = true;
    await calling;
  };
}
