import { ALL_EVENTS } from '@app/contracts/all-events';
import { ALL_MESSAGES } from '@app/contracts/all-messages';
import type { Event } from '@app/contracts/event';
import type { Message, ServiceName } from '@app/contracts/message';
import { RIGHTS } from '@app/rabbitmq-admin/accounts/rights';
import { SERVICES } from '@app/rabbitmq/topology/topology';
import { errorsOf } from './errors';
import { LETTERS } from './letters';
import { BINDING_VERSION, SECURITY, type Ref } from './messages';

/** An Operation Object of AsyncAPI 3, from the viewpoint of this system. */
export interface OperationObject {
  action: 'receive' | 'send';
  title: string;
  summary: string;
  description?: string;
  channel: Ref;
  messages: Ref[];
  tags: { name: string }[];
  security: Ref[];
  bindings: { amqp: object };
  reply?: { address: { location: string; description: string }; channel: Ref; messages: Ref[] };
  /** Accounts of the setup whose topic permission includes the routing key. */
  'x-publishers'?: string[];
}

/** Consumed and published messages by routing key, and dead letters by queue. */
export const operations = (): Record<string, OperationObject> => ({
  ...Object.fromEntries(ALL_MESSAGES.map((message) => [message.pattern, receive(message)])),
  ...Object.fromEntries(ALL_EVENTS.map((event) => [event.type, send(event)])),
  ...Object.fromEntries(
    SERVICES.flatMap((service) =>
      LETTERS.map(({ queueOf, summary }) => [queueOf(service), giveUp(service, queueOf(service), summary)]),
    ),
  ),
});

const channelRef = (name: string): Ref => ({ $ref: `#/channels/${name}` });
const inChannel = (channel: string, message: string): Ref => ({ $ref: `#/channels/${channel}/messages/${message}` });

function receive(message: Message<object, object>): OperationObject {
  const { pattern, kind, service, purpose } = message;
  const errors = errorsOf(message);
  return {
    action: 'receive',
    title: pattern,
    summary: purpose,
    description: `Errors:\n\n${errors.map(({ status, when }) => `- \`${status}\`: ${when}`).join('\n')}`,
    channel: channelRef(pattern),
    messages: [inChannel(pattern, pattern)],
    tags: [{ name: service }, { name: kind }],
    security: SECURITY,
    bindings: {
      amqp: {
        deliveryMode: kind === 'command' ? 2 : 1,
        mandatory: true,
        timestamp: true,
        ack: true,
        bindingVersion: BINDING_VERSION,
      },
    },
    reply: {
      address: {
        location: '$message.header#/reply_to',
        description: 'The AMQP property `reply_to`.',
      },
      channel: channelRef('replies'),
      messages: [`${pattern}.reply`, ...errors.map(({ status }) => `error.${status}`)].map((name) => inChannel('replies', name)),
    },
    'x-publishers': Object.entries(RIGHTS).flatMap(([account, { commands }]) =>
      new RegExp(commands).test(pattern) ? [account] : [],
    ),
  };
}

const send = ({ type, service, purpose }: Event<object>): OperationObject => ({
  action: 'send',
  title: type,
  summary: purpose,
  channel: channelRef(type),
  messages: [inChannel(type, type)],
  tags: [{ name: service }, { name: 'event' }],
  security: SECURITY,
  bindings: { amqp: { deliveryMode: 2, mandatory: false, timestamp: true, bindingVersion: BINDING_VERSION } },
});

const giveUp = (service: ServiceName, queue: string, summary: string): OperationObject => ({
  action: 'send',
  title: queue,
  summary,
  channel: channelRef(queue),
  messages: [inChannel(queue, 'deadLetter')],
  tags: [{ name: service }, { name: 'dead letter' }],
  security: SECURITY,
  bindings: { amqp: { deliveryMode: 2, mandatory: true, bindingVersion: BINDING_VERSION } },
});
