import { ALL_EVENTS, HEARD_HERE } from '@app/contracts/all-events';
import { ALL_MESSAGES, OPEN_MESSAGES } from '@app/contracts/all-messages';
import type { Event } from '@app/contracts/event';
import type { Message } from '@app/contracts/message';
import {
  BINDINGS,
  EXCHANGES,
  LANES,
  QUEUES,
  SERVICES,
  type ExchangeName,
  type QueueDeclaration,
} from '@app/rabbitmq/topology/topology';
import { POSSIBLE_STATUSES } from './errors';
import { LETTERS } from './letters';
import { BINDING_VERSION, ref, type Ref } from './messages';

/** A Channel Object of AsyncAPI 3: a routing key of an exchange, or a queue. */
export interface ChannelObject {
  address: string | null;
  title: string;
  description: string;
  messages: Record<string, Ref>;
  bindings: { amqp: object };
  /** Every exchange for messages with this routing key, with the queues of this system that are bound there. */
  'x-exchanges'?: { name: ExchangeName; queues: string[] }[];
  /** Arguments of the queue. */
  'x-arguments'?: QueueDeclaration['arguments'];
}

/** Routing keys and queues, by name. */
export const channels = (): Record<string, ChannelObject> => ({
  ...Object.fromEntries(ALL_MESSAGES.map((message) => [message.pattern, messageChannel(message)])),
  ...Object.fromEntries(ALL_EVENTS.map((event) => [event.type, eventChannel(event)])),
  replies: repliesChannel(),
  ...queueChannels(),
});

function exchangeBinding(wanted: ExchangeName) {
  const { name, type } = EXCHANGES.find(({ name }) => name === wanted)!;
  const exchange = { name, type, durable: true, autoDelete: false, vhost: '/' };
  return { amqp: { is: 'routingKey', exchange, bindingVersion: BINDING_VERSION } };
}

const queuesOf = (exchange: ExchangeName, key: string) =>
  BINDINGS.filter((binding) => binding.exchange === exchange && binding.routingKey === key).map(({ queue }) => queue);

/** AsyncAPI allows one exchange for a channel: `commands` if other services may publish the message, else `calls`. */
function messageChannel({ pattern, purpose }: Message<object, object>): ChannelObject {
  const isOpen = OPEN_MESSAGES.some((operation) => operation.pattern === pattern);
  const exchanges = ['calls' as const, ...LANES].filter((exchange) => queuesOf(exchange, pattern).length > 0);
  return keyChannel(isOpen ? 'commands' : 'calls', exchanges, pattern, purpose);
}

const eventChannel = ({ type, purpose }: Event<object>): ChannelObject =>
  keyChannel('events', HEARD_HERE.has(type) ? ['events.own', 'events'] : ['events'], type, purpose);

function keyChannel(exchange: ExchangeName, exchanges: ExchangeName[], key: string, description: string): ChannelObject {
  return {
    address: key,
    title: key,
    description,
    messages: { [key]: ref('messages', key) },
    bindings: exchangeBinding(exchange),
    'x-exchanges': exchanges.map((name) => ({ name, queues: queuesOf(name, key) })),
  };
}

function queueChannel(
  { name, arguments: queueArguments }: QueueDeclaration,
  description: string,
  messages: string[],
): ChannelObject {
  const queue = { name, durable: true, exclusive: false, autoDelete: false, vhost: '/' };
  return {
    address: name,
    title: name,
    description,
    messages: Object.fromEntries(messages.map((message) => [message, ref('messages', message)])),
    bindings: { amqp: { is: 'queue', queue, bindingVersion: BINDING_VERSION } },
    'x-arguments': queueArguments,
  };
}

/** The queues to which messages are published directly, and the dead-letter queues. */
function queueChannels(): Record<string, ChannelObject> {
  const channels: Record<string, ChannelObject> = {};
  for (const queue of QUEUES) {
    const keys = BINDINGS.filter(({ exchange, ...binding }) => binding.queue === queue.name && exchange !== 'retry');
    if (keys.length === 0) continue;
    const isDead = keys.some(({ exchange }) => exchange === 'dead');
    channels[queue.name] = isDead
      ? queueChannel(
          queue,
          `${LETTERS.find(({ queueOf }) => SERVICES.some((service) => queueOf(service) === queue.name))?.summary} Operators inspect it with \`npm run dead-letters\`.`,
          ['deadLetter'],
        )
      : queueChannel(queue, 'Consumed by the service; bound to one routing key for each message.', [
          ...new Set(keys.map(({ routingKey }) => routingKey)),
        ]);
  }
  return channels;
}

function repliesChannel(): ChannelObject {
  const names = [
    ...ALL_MESSAGES.map(({ pattern }) => `${pattern}.reply`),
    ...POSSIBLE_STATUSES.map((status) => `error.${status}`),
  ];
  return {
    address: null,
    title: 'replies',
    description: 'The routing key is the `reply_to` of the call: your queue, bound by its own name.',
    messages: Object.fromEntries(names.map((name) => [name, ref('messages', name)])),
    bindings: exchangeBinding('replies'),
  };
}
