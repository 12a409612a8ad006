import { setTimeout as sleep } from 'node:timers/promises';

/**
 * Several clients that call again and again, each after its answer. Their rate is bounded: refusals come at once, and a loop without a bound
 * would ask as often as the machine lets it, over a limit of calls, and for more than the test can look at afterwards.
 *
 * @param perSecond most calls a second, of all clients together
 * @param call given the number of the client, and of its call
 * @returns what ends it: resolves when every call has its answer, and rejects with the first call that did
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
      // What a slow answer made it miss stays missed.
      due = Math.max(due + everyMs, performance.now());
      await sleep(due - performance.now());
    }
  };
  const calling = Promise.all(Array.from({ length: clients }, client));
  // Told to who ends it.
  calling.catch(() => undefined);
  return async () => {
    ending = true;
    await calling;
  };
}
