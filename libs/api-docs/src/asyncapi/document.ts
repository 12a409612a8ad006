import { ALL_EVENTS } from '@app/contracts/all-events';
import { ALL_MESSAGES } from '@app/contracts/all-messages';
import { LIMITS } from '@app/contracts/fields';
import { MAX_BODY_BYTES, MAX_DEPTH, MAX_QUERY_BYTES, MAX_VALUES } from '@app/contracts/json';
import { AddNotification } from '@app/contracts/notifications.add';
import { LANES } from '@app/rabbitmq/topology/topology';
import { titled } from '../openapi/names';
import { schemasOf } from '../openapi/schemas';
import { channels } from './channels';
import { ENVELOPES } from './envelopes';
import { ERROR_SCHEMA, FIELD_PROBLEM_SCHEMA, POSSIBLE_STATUSES } from './errors';
import { messageSchemas } from './message-schemas';
import {
  SECURITY,
  deadLetterMessage,
  errorMessage,
  eventMessage,
  replyMessage,
  requestMessage,
  type MessageObject,
} from './messages';
import { operations } from './operations';

/** Paragraphs with code in backticks, because the page supports no other markup. */
const DESCRIPTION = `Messages that the services of the collaboration backend consume from RabbitMQ and publish to it. The document describes this system: \`receive\` is a command or query that you publish and the system consumes; \`send\` is an event that it publishes and you may listen to.

To call, publish with the routing key of the operation to the exchange that your account was given, one of ${LANES.map((lane) => `\`${lane}\``).join(', ')}. Each exchange is a separate lane, so that a backlog in one lane does not delay another. The gateway and the services publish to \`calls\`. The body is JSON in UTF-8, at most ${MAX_BODY_BYTES / 1024 / 1024} MiB (a query ${MAX_QUERY_BYTES / 1024} KiB), ${MAX_DEPTH} levels deep and with ${MAX_VALUES} values, without an envelope. Unknown fields are ignored, but deletions, \`documents.set.v1\` and \`notifications.update.v1\` refuse one that may be a misspelt field. A field without a value is left out: \`null\` is refused. With \`reply_to\` the reply is published to exchange \`replies\`, with your queue as routing key and your \`correlation_id\`. A query needs \`reply_to\`. A command without \`reply_to\` is executed too: it is retried after a transient failure, and becomes a dead letter after a permanent one.

To listen, consume the queue that was declared for your account and bound to exchange \`events\` for your event types. Events that the system itself listens to are published to \`events.own\` first. Events are delivered at least once and in no particular order. Objects that can change have a \`version\` that only grows.

An identifier is any text of 1-${LIMITS.identifierBytes} bytes of UTF-8 that is not blank and has no control characters. Within a major version fields are only added; another major version is another routing key.`;

const server = (protocol: 'amqp' | 'amqps', port: string) => ({
  host: '{host}:{port}',
  pathname: '/',
  protocol,
  protocolVersion: '0.9.1',
  description: protocol === 'amqp' ? 'RabbitMQ 3.10 or later.' : 'RabbitMQ with TLS.',
  variables: {
    host: { default: 'localhost', description: 'Host of RabbitMQ.' },
    port: { default: port, description: 'Port of RabbitMQ. `npm start` uses a free port and writes it to `.local/stack.env`.' },
  },
  security: SECURITY,
});

function messages(): Record<string, MessageObject> {
  const all = [
    ...ALL_MESSAGES.flatMap((message) => [requestMessage(message), replyMessage(message)]),
    ...ALL_EVENTS.map(eventMessage),
    ...POSSIBLE_STATUSES.map(errorMessage),
    deadLetterMessage(AddNotification),
  ];
  return Object.fromEntries(all.map((message) => [message.name, message]));
}

/** Wraps each `$ref` that has siblings, because draft-07, which AsyncAPI uses, ignores keywords next to a `$ref`. */
function besideRefs(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(besideRefs);
  if (typeof value !== 'object' || value === null) return value;
  const { $ref, ...rest } = Object.fromEntries(Object.entries(value).map(([key, entry]) => [key, besideRefs(entry)]));
  if ($ref === undefined) return rest;
  return Object.keys(rest).length === 0 ? { $ref } : { ...rest, allOf: [{ $ref }] };
}

/** Every schema of the document by its name. */
function schemas(): Record<string, object> {
  const bodies = schemasOf([
    ...ALL_MESSAGES.flatMap(({ request, result }) => [request, result]),
    ...ALL_EVENTS.map(({ data }) => data),
  ]);
  return titled({
    ...(besideRefs(bodies) as Record<string, object>),
    ErrorBody: ERROR_SCHEMA,
    FieldProblem: FIELD_PROBLEM_SCHEMA,
    ...ENVELOPES,
    ...messageSchemas(),
    DeadLetterBody: { description: 'As published; it need not be JSON.' },
  });
}

/** The AsyncAPI document of all messages on the broker, generated from the contracts and the topology. */
export function asyncApiDocument() {
  return {
    asyncapi: '3.0.0',
    info: {
      title: 'Collaboration backend messages',
      version: '1.0.0',
      description: DESCRIPTION,
      license: { name: 'MIT', url: 'https://spdx.org/licenses/MIT.html' },
      tags: [
        { name: 'users', description: 'Organizations, folders, documents, users and their memberships; API keys and tokens.' },
        { name: 'notifications', description: 'Notifications and their recipients.' },
      ],
    },
    defaultContentType: 'application/json',
    servers: { amqp: server('amqp', '5672'), amqps: server('amqps', '5671') },
    channels: channels(),
    operations: operations(),
    components: {
      messages: messages(),
      schemas: schemas(),
      correlationIds: {
        call: { location: '$message.header#/correlation_id', description: 'The AMQP property `correlation_id`.' },
      },
      securitySchemes: {
        account: {
          type: 'userPassword',
          description:
            'A broker account. Its topic permission lists the operations that it may publish. Its grants (`npm run keys -- grant KEY --publisher ACCOUNT`) list the API keys that it may act for. `user_id` proves the account, because the broker checks it.',
        },
      },
    },
  };
}
