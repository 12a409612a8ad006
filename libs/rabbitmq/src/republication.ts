import { randomUUID } from 'node:crypto';
import type { ErrorBody } from '@app/contracts/error';
import type { Delivery } from './delivery';
import type { DeliveryContext } from './delivery-context';
import { HEADER } from '@app/amqp/headers';
import type { Publication } from '@app/amqp/publisher';

const MAX_REASON_CHARACTERS = 500;

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

/**
 * A command as a service publishes it again: to a retry queue, or to the dead letters. Body, message_id, type, timestamp and app_id stay.
 * `user_id` must be dropped, because the broker checks it against the account that publishes; `expiration`, because the message must not
 * expire where it is kept.
 *
 * @param dead why it goes to the dead letters
 * @param withHeaders false keeps only those headers that were understood: the others may hold what can be read but not written again
 */
export function republication(
  delivery: Delivery,
  target: Pick<Publication, 'exchange' | 'routingKey'>,
  { attempt, dead, withHeaders = true }: { attempt: number; dead?: ErrorBody; withHeaders?: boolean },
): Publication {
  const { message, context, address } = delivery;
  const original: Record<string, unknown> = withHeaders ? { ...message.properties.headers } : understood(context);
  for (const name of [...DROPPED_HEADERS, ...Object.values(OURS)]) delete original[name];
  const firstFailedAt: unknown = context.attempt > 1 ? message.properties.headers?.[HEADER.firstFailedAt] : undefined;

  return {
    ...target,
    body: message.content,
    properties: {
      persistent: true,
      contentType: short(message.properties.contentType),
      contentEncoding: short(message.properties.contentEncoding),
      type: short(message.properties.type),
      messageId: context.messageId,
      appId: context.appId,
      timestamp: seconds(message.properties.timestamp),
      ...(address && { replyTo: address.replyTo }),
      // By ours a publication is told from others that are on their way; the caller's comes back with the reply.
      correlationId: randomUUID(),
      headers: {
        ...original,
        [OURS.routingKey]: context.pattern,
        [OURS.attempt]: attempt,
        [OURS.correlationId]: address?.correlationId,
        [OURS.originUser]: context.userId,
        [OURS.firstFailedAt]: typeof firstFailedAt === 'number' ? firstFailedAt : Date.now(),
        [OURS.deadStatus]: dead?.status,
        [OURS.deadReason]: dead?.message.slice(0, MAX_REASON_CHARACTERS).toWellFormed(),
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
  attempt: HEADER.attempt,
  correlationId: HEADER.correlationId,
  originUser: HEADER.originUser,
  firstFailedAt: HEADER.firstFailedAt,
  deadStatus: HEADER.deadStatus,
  deadReason: HEADER.deadReason,
} as const;

const seconds = (value: unknown) => (Number.isSafeInteger(value) ? (value as number) : undefined);
const short = (value: unknown) => (typeof value === 'string' && Buffer.byteLength(value) <= 255 ? value : undefined);
