import { randomUUID } from 'node:crypto';
import type { ConfirmChannel } from 'amqplib';
import { refusalOf } from '../connection/opened-channel';
import { HEADER } from '../messages/headers';
import type { Sender } from '../messages/message-properties';
import { within } from '@app/runtime/within';
import { writeMessage } from '../messages/write-message';

/** Longest wait for the confirms. */
const TIMEOUT_MS = 1000;
/** Deadline of a first message, which has passed: consumers drop such a message unread. */
export const PASSED = 1;

/**
 * Publishes a first message to each target. It has no effect.
 *
 * A channel opens a session with a quorum queue by its first message. RabbitMQ 3.10 asks only the node that had the leader at that moment. If that
 * node is away, it nacks each message of this channel to this queue until the node is back, also when the queue has another leader by then.
 *
 * @param replyTo the caller's reply queue, which gets no reply
 * @returns false when a queue refused it, so that another channel is needed. true when all was confirmed, or no answer came within 1 s
 * @throws Error of the broker when the account may not publish it
 */
export async function warmUp(
  channel: ConfirmChannel,
  targets: readonly { exchange: string; routingKey: string }[],
  { appId, userId }: Sender,
  replyTo: string,
): Promise<boolean> {
  let refused = false;
  const confirms = targets.map(({ exchange, routingKey }) => {
    const correlationId = randomUUID();
    return new Promise<void>((resolve) =>
      writeMessage(
        channel,
        { exchange, routingKey, mandatory: false },
        {
          contentType: 'application/json',
          correlationId,
          // A deadline counts only when a caller waits.
          replyTo,
          messageId: correlationId,
          type: routingKey,
          expiration: TIMEOUT_MS,
          appId,
          userId,
          headers: { [HEADER.deadline]: PASSED },
        },
        Buffer.from('{}'),
        (error) => {
          refused ||= error !== null;
          resolve();
        },
      ),
    );
  });
  await within(TIMEOUT_MS, Promise.all(confirms));
  const refusal = refusalOf(channel);
  // Another channel would not help, and a queue without a leader is not the reason.
  if (refusal) throw refusal;
  return !refused;
}
