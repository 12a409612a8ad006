import { INT64, LIMITS } from '@app/contracts/fields';
import { IDEMPOTENCY_KEY, REQUEST_ID } from '@app/contracts/headers';
import type { Message } from '@app/contracts/message';
import { HEADER } from '@app/amqp/messages/headers';

/** Headers or AMQP properties of a message, as JSON Schema. */
export interface FieldsSchema {
  type: 'object';
  required?: string[];
  properties: Record<string, object>;
}

/** Longest AMQP short string. */
const MAX_BYTES = 255;
const text = (description: string) => ({ type: 'string', maxLength: MAX_BYTES, description });

const API_KEY = {
  type: 'string',
  minLength: 1,
  maxLength: LIMITS.identifierBytes,
  description: 'The tenant. An unknown tenant, or one for which the account has no grant, is refused.',
};

const REQUEST_HEADERS = {
  [HEADER.requestId]: {
    type: 'string',
    pattern: REQUEST_ID.source,
    description: '1-128 printable ASCII characters. Every log line about this message has it. Other values are replaced.',
  },
  [HEADER.deadline]: { ...INT64, description: 'Epoch milliseconds. The message is not executed after this time.' },
  [HEADER.replyBatches]: {
    type: 'boolean',
    description:
      'true: several replies may arrive in one message of type `replies`: 4 bytes with the length of an index, most significant byte first; the index, a JSON array with `[correlation_id, headers, bytes of the body]` for each reply; the bodies. The typed client does this. Absent: each reply is its own message.',
  },
};

const TRACE_HEADERS = {
  [HEADER.traceparent]: {
    type: 'string',
    description: 'W3C trace context. With tracing on, the trace goes on here, through retries, and to the events.',
  },
  [HEADER.tracestate]: {
    type: 'string',
    maxLength: 512,
    description: 'The rest of the W3C trace context. A longer one is dropped.',
  },
};

const COMMAND_HEADERS = {
  ...REQUEST_HEADERS,
  [HEADER.deadline]: {
    ...INT64,
    description:
      'Epoch milliseconds, only with `reply_to`. The command is not executed after this time. A command without `reply_to` never expires.',
  },
  [HEADER.idempotencyKey]: {
    type: 'string',
    pattern: IDEMPOTENCY_KEY.source,
    description:
      'Like the HTTP header Idempotency-Key, 1-255 printable ASCII characters. The first answer is stored for at least 24 hours and returned to a repetition. Without effect for a command that does not list the error `FAILED_PRECONDITION`.',
  },
};

const PROPERTIES = {
  reply_to: {
    type: 'string',
    pattern: '^[A-Za-z0-9._-]{1,255}$',
    description: 'Your queue, bound to exchange `replies` by its own name. Absent: no reply.',
  },
  correlation_id: text('Unique among your calls. The reply has the same value.'),
  type: text('The routing key again.'),
  content_type: { const: 'application/json', description: 'Recommended. The body is always read as JSON in UTF-8.' },
  timestamp: { ...INT64, description: 'Seconds since 1970. The metric of the age of commands counts from it.' },
  app_id: text('The name of your service.'),
  user_id: text(
    'Your broker account, checked by the broker. Its grants decide which API keys it may act for, so it is required unless the API key is granted to all accounts (`*`).',
  ),
};

const EXPIRATION = { type: 'string', pattern: '^[0-9]+$' };

const QUERY_PROPERTIES: FieldsSchema = {
  type: 'object',
  required: ['reply_to'],
  properties: {
    ...PROPERTIES,
    reply_to: { ...PROPERTIES.reply_to, description: 'Your queue, bound to exchange `replies` by its own name.' },
    expiration: {
      ...EXPIRATION,
      description: 'Milliseconds that you wait, as text (an AMQP rule). An expired query is not executed.',
    },
  },
};

const COMMAND_PROPERTIES: FieldsSchema = {
  type: 'object',
  properties: {
    delivery_mode: {
      const: 2,
      description:
        'Persistent. Recommended together with publisher confirms and `mandatory`: then you know that the broker has the message.',
    },
    message_id: text(
      'Identity of the effect. When the message is published again with the same id within 24 hours, a notification is not stored twice, and nothing is deleted, removed or erased that came after the first run. A notification without `notificationId` needs it, and uses it as its id. `users.delete.v1` and `users.erase.v1` need it without `x-idempotency-key`, and `notifications.delete.v1` always.',
    ),
    ...PROPERTIES,
    expiration: {
      ...EXPIRATION,
      description:
        'Milliseconds after which the broker drops a command that still waits in its queue, as text (an AMQP rule). Only with `reply_to`: otherwise nobody learns of it.',
    },
  },
};

const withTenant = (properties: Record<string, object>): FieldsSchema => ({
  type: 'object',
  required: [HEADER.apiKey],
  properties: { [HEADER.apiKey]: API_KEY, ...properties, ...TRACE_HEADERS },
});

/** Names of the schemas below for a command or query. */
export const envelopeOf = ({ kind, tenantless }: Message<object, object>) => {
  const name = kind === 'command' ? 'Command' : 'Query';
  return { headers: `${tenantless ? 'Tenantless' : ''}${name}Headers`, properties: `${name}Properties` };
};

/** Schemas of headers and properties, by name. */
export const ENVELOPES: Readonly<Record<string, FieldsSchema>> = {
  CommandHeaders: withTenant(COMMAND_HEADERS),
  CommandProperties: COMMAND_PROPERTIES,
  QueryHeaders: withTenant(REQUEST_HEADERS),
  TenantlessQueryHeaders: { type: 'object', properties: { ...REQUEST_HEADERS, ...TRACE_HEADERS } },
  QueryProperties: QUERY_PROPERTIES,
  ReplyProperties: {
    type: 'object',
    properties: {
      correlation_id: text('That of the call; absent when it had none.'),
      content_type: { const: 'application/json', description: 'JSON in UTF-8.' },
      delivery_mode: { const: 1, description: 'Not persistent: it is lost with the broker or with the connection that waits.' },
    },
  },
  EventHeaders: withTenant({ [HEADER.apiKey]: { ...API_KEY, description: 'The tenant.' } }),
  EventProperties: {
    type: 'object',
    required: ['message_id', 'correlation_id', 'type', 'content_type', 'timestamp', 'app_id', 'user_id', 'delivery_mode'],
    properties: {
      message_id: text('The `id` of the event: the same in every repetition.'),
      correlation_id: text('The same.'),
      type: text('The type of the event, which is its routing key.'),
      content_type: { const: 'application/cloudevents+json', description: 'A CloudEvent as JSON in UTF-8.' },
      timestamp: { ...INT64, description: 'Time of the event, in seconds since 1970.' },
      app_id: text('The publishing service.'),
      user_id: text('Its broker account, checked by the broker.'),
      delivery_mode: { const: 2, description: 'Persistent.' },
    },
  },
  DeadLetterHeaders: {
    type: 'object',
    properties: {
      [HEADER.deadStatus]: { type: 'string', description: 'Status of the error. Absent: the message crashed its consumers.' },
      [HEADER.deadReason]: { type: 'string', maxLength: 500, description: 'Message of the error, for people.' },
      [HEADER.routingKey]: { type: 'string', description: 'The original routing key.' },
      [HEADER.lane]: { type: 'string', description: 'The original exchange of a command.' },
      [HEADER.attempt]: { ...INT64, minimum: 1, description: 'Number of attempts.' },
      [HEADER.crashes]: { ...INT64, minimum: 1, description: 'Processes that ended while they handled it alone.' },
      [HEADER.firstFailedAt]: { ...INT64, description: 'Time of the first failure, in epoch milliseconds.' },
      [HEADER.originUser]: { type: 'string', description: 'Broker account of the publisher, if the message had a `user_id`.' },
      [HEADER.correlationId]: { type: 'string', description: 'The `correlation_id` of the caller, if one waited.' },
      [HEADER.deadSize]: {
        ...INT64,
        description: 'Size of the original body in bytes. Only set for a malformed body, of which only the first KiB is kept.',
      },
      [HEADER.deadHash]: { type: 'string', description: 'SHA-256 of that body, in hexadecimal digits.' },
    },
  },
};
