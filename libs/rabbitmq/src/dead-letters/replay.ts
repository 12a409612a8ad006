import type { ConfirmChannel, Options } from 'amqplib';
import type { ServiceName } from '@app/contracts/message';
import { HEADER } from '@app/amqp/headers';
import { patternsOf } from '../handler-check';
import { OURS, DROPPED_HEADERS } from '../republication';
import { commandQueue } from '../topology';
import type { DeadLetter } from './dead-letter';
import type { OpenedQueue } from './opened-queue';
import { DeadLetterError } from './errors';

const CONFIRM_TIMEOUT_MS = 30_000;

const serviceOf = (queue: string) => queue.slice(0, queue.indexOf('.')) as ServiceName;

/** Why a letter cannot be replayed, as far as it tells by itself. */
export function replayObstacle({ operation, queue, message }: DeadLetter): string | undefined {
  if (operation === undefined) return 'nothing tells the operation that it was published for';
  if (!patternsOf(serviceOf(queue)).includes(operation)) return 'its operation is none of this service';
  const { properties } = message;
  const headers: Record<string, unknown> = properties.headers ?? {};
  const deadline = headers[HEADER.deadline];
  // 504 is a promise that it will not happen any more, and the consumer would keep it by dropping the message.
  if (properties.replyTo !== undefined && typeof deadline === 'number' && deadline < Date.now()) {
    return 'its caller waited, and was promised that nothing happens after the deadline';
  }
  return undefined;
}

/**
 * What the publisher had published, as if tried for the first time. `user_id` is left out, because the broker checks it against the account
 * that publishes: a header tells whose message it is, so that a replay may do no more than its publisher. CC and BCC are left out, which
 * route copies by themselves, and everything that queues and services have written about the failure.
 */
export function replayProperties(letter: DeadLetter): Options.Publish {
  const { republished, operation, account, correlationId } = letter;
  const { properties } = letter.message;
  const headers: Record<string, unknown> = { ...properties.headers };
  for (const name of [...DROPPED_HEADERS, ...Object.values(OURS)]) delete headers[name];
  const { contentType, contentEncoding, type, messageId, appId, timestamp, priority } = properties as Options.Publish;
  const { replyTo } = properties as Options.Publish;
  return {
    persistent: true,
    contentType,
    contentEncoding,
    type,
    messageId,
    appId,
    timestamp,
    priority,
    // A service puts aside only what nobody waits for.
    ...(!republished && { replyTo }),
    headers: {
      ...headers,
      [OURS.routingKey]: operation,
      ...(account !== undefined && { [OURS.originUser]: account }),
      ...(correlationId !== undefined && { [OURS.correlationId]: correlationId }),
    },
  };
}

/**
 * Publishes a letter to the queue that it came from, by the way of retries: only there headers count that are not the publisher's. It may be removed once the broker has confirmed that another queue has it.
 *
 * @returns undefined, or why it must stay
 * @throws when the channel ended: it stays, and may be in the other queue as well
 */
export async function replay(queue: OpenedQueue, letter: DeadLetter): Promise<string | undefined> {
  return replayObstacle(letter) ?? (await publishAgain(queue, letter));
}

async function publishAgain({ channel, failed }: OpenedQueue, letter: DeadLetter): Promise<string | undefined> {
  let returned = false;
  const onReturn = () => (returned = true);
  channel.once('return', onReturn);
  let timer: NodeJS.Timeout | undefined;
  const tooLong = new Promise<never>((_, reject) => {
    const error = new DeadLetterError(`The broker has not confirmed ${letter.id} within ${CONFIRM_TIMEOUT_MS / 1000} s.`);
    timer = setTimeout(() => reject(error), CONFIRM_TIMEOUT_MS);
  });
  try {
    const nacked = await Promise.race([confirmation(channel, letter), failed, tooLong]);
    // The return of a message comes before its confirm, and only one is on its way.
    if (returned) return 'no queue is bound for its operation';
    return nacked;
  } finally {
    clearTimeout(timer);
    channel.off('return', onReturn);
  }
}

/** @returns why the broker refused it; undefined when it has it */
function confirmation(channel: ConfirmChannel, letter: DeadLetter): Promise<string | undefined> {
  return new Promise((resolve) => {
    const onConfirm = (error: Error | null) => {
      if (!error) resolve(undefined);
      else if (error.message === 'message nacked') resolve('the queue of its operation is full');
    };
    try {
      const properties = { ...replayProperties(letter), mandatory: true };
      channel.publish('retry', commandQueue(serviceOf(letter.queue)), letter.message.content, properties, onConfirm);
    } catch (error) {
      resolve(`it cannot be written again: ${(error as Error).message}`);
    }
  });
}
