import { HEADER } from './headers';
import { newMessageId } from './message-id';
import type { Properties } from './write-message';

export interface SendOptions {
  /** The tenant. Required unless the message is tenantless. */
  apiKey?: string;
  requestId: string;
  /** Time from now to the deadline, in milliseconds. */
  timeoutMs: number;
  /** Identity of the effect, at most 255 bytes. Default: a UUID of version 7. */
  messageId?: string;
  idempotencyKey?: string;
  /** W3C trace context of the message. */
  trace?: { traceparent: string; tracestate?: string };
}

/** The called operation: `pattern` is the routing key. */
export interface Operation {
  readonly kind: 'command' | 'query';
  readonly pattern: string;
  /** Commands of one service go to one queue. Absent: the queue of a command is unknown. */
  readonly service?: string;
  /** Whether its work is not in its body. */
  readonly changesRows?: boolean;
  /** A command with a smaller body is light. Default: `LIGHT_COMMAND_BYTES`. */
  readonly lightBytes?: number;
}

/** A command or query whose caller waits. */
export interface Request {
  readonly operation: Operation;
  readonly body: Buffer;
  /** With a `messageId`, which stays the same when the message is published again. */
  readonly options: SendOptions;
  readonly correlationId: string;
  /** In milliseconds of `performance.now()`. */
  readonly deadline: number;
}

/** The publisher of a message. */
export interface Sender {
  /** Name that the app gives itself. */
  appId: string;
  /** Its broker account. The broker refuses any other name. */
  userId: string;
}

/** Reply queue and timeout of a sender that waits. */
export interface Awaited {
  replyTo?: string;
  timeoutMs: number;
}

/**
 * The AMQP properties of a command or query.
 *
 * @param correlationId unique among the messages in flight
 * @param awaited undefined when the sender does not wait for a reply
 */
export function messageProperties(
  { kind, pattern }: Operation,
  { apiKey, requestId, messageId = newMessageId(), idempotencyKey, trace }: Omit<SendOptions, 'timeoutMs'>,
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
    expiration: awaited && expirationOf(kind, awaited.timeoutMs),
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
      [HEADER.traceparent]: trace?.traceparent,
      [HEADER.tracestate]: trace?.tracestate,
    },
  };
}

/** Until then a caller may learn the outcome of a command, and a consumer checks its deadline to the millisecond. */
const FINAL_AFTER_MS = 1000;

/** Milliseconds until the broker drops a message from its queue. Otherwise a queue without consumers fills with calls that nobody waits for. */
export const expirationOf = (kind: Operation['kind'], timeoutMs: number): number =>
  // The broker closes the channel for a negative one.
  Math.max(0, kind === 'query' ? timeoutMs : timeoutMs + FINAL_AFTER_MS);
