import { LIMITS } from '@app/contracts/fields';
import { IDEMPOTENCY_KEY, REQUEST_ID } from '@app/contracts/headers';
import type { Message } from '@app/contracts/message';
import { HEADER } from '@app/amqp/headers';

/** Headers or AMQP properties of a message, as JSON Schema. */
export interface FieldsSchema {
  type: 'object';
  required?: string[];
  properties: Record<string, object>;
}

/** What the broker holds in a short string. */
const MAX_BYTES = 255;
const text = (description: string) => ({ type: 'string', maxLength: MAX_BYTES, description });

const API_KEY = {
  type: 'string',
  minLength: 1,
  maxLength: LIMITS.identifierBytes,
  description: 'The tenant. One that does not exist, or for which the account has no grant, is refused.',
};

const REQUEST_HEADERS = {
  [HEADER.requestId]: {
    type: 'string',
    pattern: REQUEST_ID.source,
    description: '1-128 printable ASCII characters; in every log line about this message. Anything else is replaced.',
  },
  [HEADER.deadline]: { type: 'integer', description: 'Epoch milliseconds: later than that it is not carried out.' },
  [HEADER.replyBatches]: {
    type: 'boolean',
    description:
      'true: your replies may come together in a message of type `replies`: 4 bytes with the length of an index, most significant first; the index, a JSON array with `[correlation_id, headers, bytes of the body]` for each; the bodies. The typed client does this. Absent: each reply is a message.',
  },
};

const COMMAND_HEADERS = {
  ...REQUEST_HEADERS,
  [HEADER.deadline]: {
    type: 'integer',
    description:
      'Epoch milliseconds; with `reply_to` only: later than that it is not executed. Without, a command never expires.',
  },
  [HEADER.idempotencyKey]: {
    type: 'string',
    pattern: IDEMPOTENCY_KEY.source,
    description:
      'As the HTTP header Idempotency-Key, 1-255 printable ASCII characters: the first answer is kept for at least 24 hours and given again. Without effect for a command that has no `FAILED_PRECONDITION` among its errors.',
  },
  traceparent: { type: 'string', description: 'W3C trace context, kept when the command is tried again.' },
};

const PROPERTIES = {
  reply_to: {
    type: 'string',
    pattern: '^[A-Za-z0-9._-]{1,255}$',
    description: 'Your queue, bound to exchange `replies` by its own name. Absent: nobody waits.',
  },
  correlation_id: text('Comes back with the reply: unique among your calls.'),
  type: text('The routing key again.'),
  content_type: { const: 'application/json', description: 'Recommended; the body is read as JSON in UTF-8 whatever this says.' },
  timestamp: { type: 'integer', description: 'Seconds since 1970.' },
  app_id: text('The name of your service.'),
  user_id: text(
    'Your broker account, checked by the broker. Needed unless the API key is granted to everybody: by it you act for an API key.',
  ),
};

const QUERY_PROPERTIES: FieldsSchema = {
  type: 'object',
  required: ['reply_to'],
  properties: {
    ...PROPERTIES,
    reply_to: { ...PROPERTIES.reply_to, description: 'Your queue, bound to exchange `replies` by its own name.' },
    expiration: {
      type: 'string',
      pattern: '^[0-9]+$',
      description:
        'Milliseconds that you wait, as AMQP has it: as text. A query that nobody waits for any more is not carried out.',
    },
  },
};

const COMMAND_PROPERTIES: FieldsSchema = {
  type: 'object',
  properties: {
    delivery_mode: {
      const: 2,
      description: 'Persistent. Recommended, with publisher confirms and `mandatory`: then you know that the broker has it.',
    },
    message_id: text(
      'Identity of the effect: published again with the same one, nothing happens twice. Needed by a notification without its own `notificationId`, whose id it becomes.',
    ),
    ...PROPERTIES,
  },
};

const withTenant = (properties: Record<string, object>): FieldsSchema => ({
  type: 'object',
  required: [HEADER.apiKey],
  properties: { [HEADER.apiKey]: API_KEY, ...properties },
});

/** The names of the schemas below that hold for a command or query. */
export const envelopeOf = ({ kind, tenantless }: Message<object, object>) => {
  const name = kind === 'command' ? 'Command' : 'Query';
  return { headers: `${tenantless ? 'Tenantless' : ''}${name}Headers`, properties: `${name}Properties` };
};

/** Everything around a body, by name. */
export const ENVELOPES: Readonly<Record<string, FieldsSchema>> = {
  CommandHeaders: withTenant(COMMAND_HEADERS),
  CommandProperties: COMMAND_PROPERTIES,
  QueryHeaders: withTenant(REQUEST_HEADERS),
  TenantlessQueryHeaders: { type: 'object', properties: REQUEST_HEADERS },
  QueryProperties: QUERY_PROPERTIES,
  ReplyProperties: {
    type: 'object',
    properties: {
      correlation_id: text('That of the call; absent when it had none.'),
      content_type: { const: 'application/json', description: 'JSON in UTF-8.' },
      delivery_mode: { const: 1, description: 'Not persistent: it outlives neither the broker nor the connection that waits.' },
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
      timestamp: { type: 'integer', description: 'When it happened, in seconds since 1970.' },
      app_id: text('The service that tells.'),
      user_id: text('Its broker account, checked by the broker.'),
      delivery_mode: { const: 2, description: 'Persistent.' },
    },
  },
  DeadLetterHeaders: {
    type: 'object',
    properties: {
      [HEADER.deadStatus]: { type: 'string', description: 'The error: its status. Absent: it crashed its consumers.' },
      [HEADER.deadReason]: { type: 'string', maxLength: 500, description: 'The error: its message, for people.' },
      [HEADER.routingKey]: { type: 'string', description: 'The routing key it was published with.' },
      [HEADER.lane]: { type: 'string', description: 'The exchange it was published to.' },
      [HEADER.attempt]: { type: 'integer', minimum: 1, description: 'How often it was tried.' },
      [HEADER.firstFailedAt]: { type: 'integer', description: 'When the first try failed, in epoch milliseconds.' },
      [HEADER.originUser]: { type: 'string', description: 'The broker account that published it, when it had a `user_id`.' },
      [HEADER.correlationId]: { type: 'string', description: 'Its `correlation_id`, when somebody waited.' },
      [HEADER.deadSize]: {
        type: 'integer',
        description: 'Of what nobody can read, only the first KiB is kept: how many bytes it had.',
      },
      [HEADER.deadHash]: { type: 'string', description: 'The same: its SHA-256, in hexadecimal digits.' },
    },
  },
};
