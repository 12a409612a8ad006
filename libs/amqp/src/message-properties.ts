import { randomUUID } from 'node:crypto';
import { HEADER } from './headers';
import type { Properties } from './write-message';

export interface CallOptions {
  /** The tenant. Required unless the message is tenantless. */
  apiKey?: string;
  requestId: string;
  /** From now to the deadline, in milliseconds. */
  timeoutMs: number;
  /** Identity of the effect, at most 255 bytes; a random UUID when absent. */
  messageId?: string;
  idempotencyKey?: string;
}

/** What is asked for: `pattern` is the routing key. */
export interface Operation {
  readonly kind: 'command' | 'query';
  readonly pattern: string;
}

/** Who publishes. */
export interface Sender {
  /** As the app calls itself. */
  appId: string;
  /** Its broker account; the broker refuses any other. */
  userId: string;
}

/** How the sender waits for the reply. */
export interface Awaited {
  replyTo?: string;
  timeoutMs: number;
}

/**
 * The AMQP properties of a command or query.
 *
 * @param correlationId unique among those in flight
 * @param awaited undefined when nobody waits for a reply
 */
export function messageProperties(
  { kind, pattern }: Operation,
  { apiKey, requestId, messageId = randomUUID(), idempotencyKey }: Omit<CallOptions, 'timeoutMs'>,
  { appId, userId }: Sender,
  correlationId: string,
  awaited?: Awaited,
): Properties & { correlationId: string } {
  return {
    persistent: kind === 'command',
    contentType: 'application/json',
    messageId,
    correlationId,
    replyTo: awaited?.replyTo,
    // A command would be dead-lettered; its deadline is looked at by the consumer.
    expiration: kind === 'query' ? awaited?.timeoutMs : undefined,
    type: pattern,
    timestamp: Math.floor(Date.now() / 1000),
    appId,
    userId,
    headers: {
      [HEADER.apiKey]: apiKey,
      [HEADER.requestId]: requestId,
      [HEADER.idempotencyKey]: idempotencyKey,
      [HEADER.deadline]: awaited && Date.now() + awaited.timeoutMs,
      [HEADER.replyBatches]: awaited ? true : undefined,
    },
  };
}
