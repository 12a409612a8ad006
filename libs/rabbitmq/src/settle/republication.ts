import { createHash, randomUUID } from 'node:crypto';
import type { ErrorBody } from '@app/contracts/error';
import type { Delivery } from '../delivery/delivery';
import type { DeliveryContext } from '../delivery/delivery-context';
import { HEADER } from '@app/amqp/headers';
import type { Publication } from '@app/amqp/publisher';

const MAX_REASON_CHARACTERS = 500;
/** Bytes of an unreadable body that are kept. */
export const BODY_BYTES = 1024;

/**
 * Headers that must not survive. CC and BCC route copies by themselves: into the dead letters of another service, or back without delay.
 * What queues write about deaths and deliveries is about another queue.
 */
export const DROPPED_HEADERS = [
  'CC',
  'BCC',
  'x-death',
  'x-first-death-exchange',
  'x-first-death-queue',
  'x-first-death-reason',
  'x-last-death-exchange',
  'x-last-death-queue',
  'x-last-death-reason',
  'x-delivery-count',
  'x-acquired-count',
];

export interface RepublicationOptions {
  /** Broker account of this service: by it readers of a letter know that the headers below are a service's. */
  account: string;
  attempt: number;
  /** Why it goes to the letters. */
  dead?: ErrorBody;
  /** Whether only the beginning of the body is kept, with its size and hash: it cannot be read anyway. */
  stub?: boolean;
  /** false keeps only those headers that were understood: the others may hold what can be read but not written again. Default true. */
  withHeaders?: boolean;
}

/**
 * A command as a service publishes it again: to a retry queue, to the suspects or to the letters. Body, message_id, type, timestamp and
 * app_id stay. `user_id` becomes that of the service, because the broker checks it against the account that publishes. `expiration` goes,
 * because the message must not expire where it is kept.
 */
export function republication(
  delivery: Delivery,
  target: Pick<Publication, 'exchange' | 'routingKey'>,
  { account, attempt, dead, stub = false, withHeaders = true }: RepublicationOptions,
): Publication {
  const { message, context, address, lane } = delivery;
  const { content } = message;
  const original: Record<string, unknown> = withHeaders && !stub ? { ...message.properties.headers } : understood(context);
  for (const name of [...DROPPED_HEADERS, ...Object.values(OURS)]) delete original[name];
  const firstFailedAt: unknown = context.attempt > 1 ? message.properties.headers?.[HEADER.firstFailedAt] : undefined;

  return {
    ...target,
    // A copy, because the part would keep the whole.
    body: stub ? Buffer.from(content.subarray(0, BODY_BYTES)) : content,
    properties: {
      persistent: true,
      contentType: short(message.properties.contentType),
      contentEncoding: short(message.properties.contentEncoding),
      type: short(message.properties.type),
      messageId: context.messageId,
      appId: context.appId,
      userId: account,
      timestamp: seconds(message.properties.timestamp),
      ...(address && { replyTo: address.replyTo }),
      // By ours a publication is told from others that are on their way; the caller's comes back with the reply.
      correlationId: randomUUID(),
      headers: {
        ...original,
        [OURS.routingKey]: context.pattern,
        [OURS.lane]: lane,
        [OURS.attempt]: attempt,
        [OURS.correlationId]: address?.correlationId,
        [OURS.originUser]: context.userId,
        [OURS.firstFailedAt]: typeof firstFailedAt === 'number' ? firstFailedAt : Date.now(),
        [OURS.deadStatus]: dead?.status,
        [OURS.deadReason]: dead?.message.slice(0, MAX_REASON_CHARACTERS).toWellFormed(),
        [OURS.deadSize]: stub ? content.length : undefined,
        [OURS.deadHash]: stub ? createHash('sha256').update(content).digest('hex') : undefined,
      },
    },
  };
}

/** Without them a retry would have no tenant, and a dead letter could not be replayed. */
const understood = ({ apiKey, requestId, deadline, idempotencyKey }: DeliveryContext) => ({
  [HEADER.apiKey]: apiKey || undefined,
  [HEADER.requestId]: requestId,
  [HEADER.deadline]: deadline,
  [HEADER.idempotencyKey]: idempotencyKey,
});

export const OURS = {
  routingKey: HEADER.routingKey,
  lane: HEADER.lane,
  attempt: HEADER.attempt,
  correlationId: HEADER.correlationId,
  originUser: HEADER.originUser,
  firstFailedAt: HEADER.firstFailedAt,
  deadStatus: HEADER.deadStatus,
  deadReason: HEADER.deadReason,
  deadSize: HEADER.deadSize,
  deadHash: HEADER.deadHash,
} as const;

const seconds = (value: unknown) => (Number.isSafeInteger(value) ? (value as number) : undefined);
const short = (value: unknown) => (typeof value === 'string' && Buffer.byteLength(value) <= 255 ? value : undefined);
