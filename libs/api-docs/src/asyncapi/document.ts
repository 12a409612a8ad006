import { ALL_EVENTS } from '@app/contracts/all-events';
import { ALL_MESSAGES } from '@app/contracts/all-messages';
import { LIMITS } from '@app/contracts/fields';
import { MAX_BODY_BYTES, MAX_DEPTH } from '@app/contracts/json';
import { AddNotification } from '@app/contracts/notifications.add';
import { LANES } from '@app/rabbitmq/topology/topology';
import { schemasOf } from '../openapi/schemas';
import { channels } from './channels';
import { ENVELOPES } from './envelopes';
import { ERROR_SCHEMA, POSSIBLE_STATUSES } from './errors';
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

/** Paragraphs, with code in backticks: the page knows no other markup. */
const DESCRIPTION = `What the services of the collaboration backend take from RabbitMQ, and what they publish to it. The document describes this system: \`receive\` is a command or query that you publish and the system takes; \`send\` is an event that it publishes and you may listen to.

To call, publish with the routing key of the operation to the exchange that your account was given, one of ${LANES.map((lane) => `\`${lane}\``).join(', ')}: each is a lane of its own, so that a backlog in one delays nobody in another. The gateway and the services publish to \`calls\`. The body is JSON in UTF-8, at most ${MAX_BODY_BYTES / 1024 / 1024} MiB and ${MAX_DEPTH} levels deep, with nothing around it; fields that an operation does not know are ignored. With \`reply_to\` the answer comes to exchange \`replies\`, with your queue as routing key and your \`correlation_id\`. A query needs \`reply_to\`; a command without it is carried out all the same, is tried again when it fails for a while, and ends in the dead letters when it can never work.

To listen, consume the queue that was declared for your account and bound to exchange \`events\` by the types that you want. What the system itself listens to is told to \`events.own\` first. Events come at least once and in no order: what can change has a \`version\` that only grows.

An identifier is any text of 1-${LIMITS.identifierBytes} bytes of UTF-8 that is not blank and has no control characters. Within a major version fields are only added; another major version is another routing key.`;

const server = (protocol: 'amqp' | 'amqps', port: string) => ({
  host: '{host}:{port}',
  pathname: '/',
  protocol,
  protocolVersion: '0.9.1',
  description: protocol === 'amqp' ? 'RabbitMQ 3.10 or later.' : 'The same with TLS.',
  variables: {
    host: { default: 'localhost', description: 'Where RabbitMQ is.' },
    port: { default: port, description: 'Where it listens; `npm start` takes a free one and writes it to `.local/stack.env`.' },
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

/** In draft-07, which AsyncAPI builds on, what stands beside a `$ref` does not count. */
function besideRefs(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(besideRefs);
  if (typeof value !== 'object' || value === null) return value;
  const { $ref, ...rest } = Object.fromEntries(Object.entries(value).map(([key, entry]) => [key, besideRefs(entry)]));
  if ($ref === undefined) return rest;
  return Object.keys(rest).length === 0 ? { $ref } : { ...rest, allOf: [{ $ref }] };
}

/** The AsyncAPI document of everything that goes through the broker, made of the contracts and the topology. */
export function asyncApiDocument() {
  const bodies = schemasOf([
    ...ALL_MESSAGES.flatMap(({ request, result }) => [request, result]),
    ...ALL_EVENTS.map(({ data }) => data),
  ]);
  return {
    asyncapi: '3.0.0',
    info: {
      title: 'Collaboration backend messages',
      version: '1.0.0',
      description: DESCRIPTION,
      license: { name: 'MIT', url: 'https://spdx.org/licenses/MIT.html' },
      tags: [
        { name: 'users', description: 'Organizations, folders, documents, users and who is where; API keys and tokens.' },
        { name: 'notifications', description: 'Notifications and who was notified.' },
      ],
    },
    defaultContentType: 'application/json',
    servers: { amqp: server('amqp', '5672'), amqps: server('amqps', '5671') },
    channels: channels(),
    operations: operations(),
    components: {
      messages: messages(),
      schemas: { ...(besideRefs(bodies) as Record<string, object>), Error: ERROR_SCHEMA, ...ENVELOPES } as Record<string, object>,
      correlationIds: {
        call: { location: '$message.header#/correlation_id', description: 'The AMQP property `correlation_id`.' },
      },
      securitySchemes: {
        account: {
          type: 'userPassword',
          description:
            'A broker account. Its topic permission says which operations it may publish; its grants (`npm run keys -- grant <key> --publisher <account>`), for which API keys. The account is proved by `user_id`, which the broker checks.',
        },
      },
    },
  };
}
