import { randomUUID } from 'node:crypto';
import type { ErrorBody } from '@app/contracts/error';
import type { Delivery } from '../delivery/delivery';
import type { DeliveryContext } from '../delivery/delivery-context';
import { HEADER, OURS } from '@app/amqp/messages/headers';
import type { Publication } from '@app/amqp/publishing/publisher';
import { headersOf } from '@app/tracing/tracing';

const MAX_REASON_CHARACTERS = 500;

/**
 * Headers that must not be published again. CC and BCC would route copies into the dead letters of another service, or back without delay.
 * The x-death and x-delivery-count headers describe another queue, and our own another failure.
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
  ...Object.values(OURS),
];

export interface RepublicationOptions {
  /** Broker account of this service. It proves to the reader of a dead letter that a service wrote the headers below. */
  account: string;
  attempt: number;
  /** Processes that ended while they handled it as a suspect. */
  crashes?: number;
  /** Error that made it a dead letter. */
  dead?: ErrorBody;
  /** Whether only the beginning of the body is kept, with its size and hash: a malformed body is of no more use. */
  stub?: boolean;
  /** false keeps only the headers that this service understands: others may hold values that cannot be encoded again. Default true. */
  withHeaders?: boolean;
}

/**
 * Publication of a command to a retry queue, the suspect queue or a dead-letter queue. Body, message_id, type, timestamp and app_id stay.
 * `user_id` becomes that of the service, because the broker checks it against the publishing account. `expiration` is removed, because the
 * message must not expire there.
 */
export function republication(
  delivery: Delivery,
  target: Pick<Publication, 'exchange' | 'routingKey'>,
  { account, attempt, crashes, dead, stub = false, withHeaders = true }: RepublicationOptions,
): Publication {
  const { message, context, address, exchange } = delivery;
  const kept = stub ? delivery.keepStub() : undefined;
  const original: Record<string, unknown> = withHeaders && !stub ? { ...message.properties.headers } : understood(context);
  for (const name of DROPPED_HEADERS) delete original[name];
  // Suspects keep it, too, at their first attempt. Of a lane it may be forged.
  const firstFailedAt: unknown =
    message.fields.exchange === 'retry' ? message.properties.headers?.[HEADER.firstFailedAt] : undefined;

  return {
    ...target,
    body: kept?.beginning ?? message.content,
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
      // Identifies this publication among those in flight. The caller's correlation id is kept in a header.
      correlationId: randomUUID(),
      headers: {
        ...original,
        ...(context.span && NO_TRACE),
        ...headersOf(context.span),
        [HEADER.routingKey]: context.pattern,
        [HEADER.lane]: exchange,
        [HEADER.attempt]: attempt,
        [HEADER.crashes]: crashes || undefined,
        [HEADER.correlationId]: address?.correlationId,
        [HEADER.originUser]: context.userId,
        [HEADER.firstFailedAt]: typeof firstFailedAt === 'number' ? firstFailedAt : Date.now(),
        [HEADER.deadStatus]: dead?.status,
        [HEADER.deadReason]: dead?.message.slice(0, MAX_REASON_CHARACTERS).toWellFormed(),
        [HEADER.deadSize]: kept?.bytes,
        [HEADER.deadHash]: kept?.sha256,
      },
    },
  };
}

/** A tracestate that was not read must not stay beside another traceparent. */
const NO_TRACE = { [HEADER.traceparent]: undefined, [HEADER.tracestate]: undefined };

/** Without these headers a retry would have no tenant, and a dead letter could not be replayed. */
const understood = ({ apiKey, requestId, deadline, idempotencyKey }: DeliveryContext) => ({
  [HEADER.apiKey]: apiKey || undefined,
  [HEADER.requestId]: requestId,
  [HEADER.deadline]: deadline,
  [HEADER.idempotencyKey]: idempotencyKey,
});

const seconds = (value: unknown) => (Number.isSafeInteger(value) ? (value as number) : undefined);
const short = (value: unknown) => (typeof value === 'string' && Buffer.byteLength(value) <= 255 ? value : undefined);
