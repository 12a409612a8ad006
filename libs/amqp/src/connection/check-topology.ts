import type { Channel } from 'amqplib';

const NOT_FOUND = 404;
/**
 * The broker's texts when a queue exists, but its only node does not run: of 3.10, of 4.0, which looks for the node for 70 s before that, and of
 * 4.0 while the node stops.
 */
const HOME_NODE_DOWN =
  /home node .* is down or inaccessible|failed to perform operation on queue .* due to timeout|process is stopped by supervisor/;

/** Whether the broker refused because the queue is on a node that does not run. */
export const isNodeAway = (error: unknown): boolean => HOME_NODE_DOWN.test((error as Error).message);

/** The queue exists, and the broker node that has it is away. */
export class NodeAway extends Error {}

/**
 * Checks that exchanges exist. Services may not declare anything, so they only check. A passive check does not compare arguments or bindings;
 * only declaring does.
 *
 * @throws Error that says what is missing and what to run
 */
export async function checkExchanges(channel: Channel, names: readonly string[]): Promise<void> {
  for (const name of names) await explainMissing(`exchange ${name}`, channel.checkExchange(name));
}

/** @throws NodeAway, or Error that says what is missing and what to run */
export async function checkQueues(channel: Channel, names: readonly string[]): Promise<void> {
  for (const name of names) await explainMissing(`queue ${name}`, channel.checkQueue(name));
}

/**
 * A queue can go between a check and the work that needs it.
 *
 * @param what kind and name, such as `queue users.calls`
 * @throws NodeAway, or Error that says what is missing and what to run; other errors as they are
 */
export async function explainMissing<T>(what: string, work: PromiseLike<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    if ((error as { code?: unknown }).code !== NOT_FOUND) throw error;
    if (isNodeAway(error)) throw new NodeAway(`the ${what} is on a broker node that is away`, { cause: error });
    throw new Error(`the ${what} does not exist in the broker: run "npm run setup"`, { cause: error });
  }
}
