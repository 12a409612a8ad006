import { randomUUID } from 'node:crypto';
import type { Options } from 'amqplib';
import { HEADER } from './headers';

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

/** The AMQP properties that every command and query has, whether somebody waits for it or not. */
export function messageProperties(
  { kind, pattern }: Operation,
  { apiKey, requestId, messageId = randomUUID(), idempotencyKey }: Omit<CallOptions, 'timeoutMs'>,
  { appId, userId }: Sender,
): Omit<Options.Publish, 'headers'> & { headers: Record<string, unknown> } {
  return {
    persistent: kind === 'command',
    contentType: 'application/json',
    messageId,
    type: pattern,
    timestamp: Math.floor(Date.now() / 1000),
    appId,
    userId,
    headers: { [HEADER.apiKey]: apiKey, [HEADER.requestId]: requestId, [HEADER.idempotencyKey]: idempotencyKey },
  };
}
