import { randomUUID } from 'node:crypto';
import type { ConfirmChannel } from 'amqplib';
import type { RabbitConnection } from '../connection/connection';
import { errorOf } from '../connection/opened-channel';
import type { ConfirmedPublisher } from './publisher';
import { writeMessage } from '../messages/write-message';

const EVERY_MS = 2000;
/** Messages on their way. The publisher leaves the node before there are more. */
const MOST_UNCONFIRMED = 4;

/** A quorum queue that drops each message. Where it does not exist yet, the broker confirms at once. */
export interface CheckTarget {
  exchange: string;
  routingKey: string;
}

/**
 * Publishes a message, and waits for its confirm: only a node that reaches a majority of the nodes confirms it. Other setup succeeds at a node in a
 * minority, too, when the metadata is in Khepri.
 *
 * @throws Error when it is refused, so that another channel is needed
 */
export async function checkQuorum(channel: ConfirmChannel, { nodes }: RabbitConnection, target: CheckTarget): Promise<void> {
  if (nodes.count === 1) return;
  await new Promise<void>((resolve, reject) =>
    writeMessage(channel, { ...target, mandatory: false }, {}, Buffer.alloc(0), (error) =>
      error
        ? reject(errorOf(channel) ?? new Error(`queue ${target.routingKey} refuses messages: it has no leader yet`))
        : resolve(),
    ),
  );
}

/**
 * Publishes such a message every 2 s, so that the publisher leaves a node that confirms none. The node takes replies, which are not confirmed and
 * never arrive.
 *
 * Only for connections that publish: a broker that is short of memory or disk stops to read from all of these.
 *
 * @returns stops it
 */
export function keepChecking(publisher: ConfirmedPublisher, { nodes }: RabbitConnection, target: CheckTarget): () => void {
  const body = Buffer.alloc(0);
  let unconfirmed = 0;
  const check = async () => {
    if (nodes.count === 1 || unconfirmed >= MOST_UNCONFIRMED) return;
    unconfirmed++;
    try {
      const properties = { correlationId: randomUUID() };
      await publisher.publish({ ...target, mandatory: false, toQuorumQueue: true, properties, body });
    } catch {
      // Without a channel there is nothing to check.
    }
    unconfirmed--;
  };
  const timer = setInterval(() => void check(), EVERY_MS).unref();
  return () => clearInterval(timer);
}
