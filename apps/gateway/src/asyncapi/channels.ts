import { ALL_EVENTS } from '@app/contracts/all-events';
import { ALL_MESSAGES } from '@app/contracts/all-messages';
import { BINDINGS, EXCHANGES, QUEUES, type ExchangeName, type QueueDeclaration } from '@app/rabbitmq/topology';
import { POSSIBLE_STATUSES } from './errors';
import { BINDING_VERSION, ref, type Ref } from './messages';

/** A Channel Object of AsyncAPI 3: a routing key of an exchange, or a queue. */
export interface ChannelObject {
  address: string | null;
  title: string;
  description: string;
  messages: Record<string, Ref>;
  bindings: { amqp: object };
  /** Queues of this system that are bound to the routing key. */
  'x-queues'?: string[];
  /** Arguments of the queue. */
  'x-arguments'?: QueueDeclaration['arguments'];
}

/** Where messages go in, and the queues where they wait, by name. */
export const channels = (): Record<string, ChannelObject> => ({
  ...Object.fromEntries(ALL_MESSAGES.map(({ pattern, purpose }) => [pattern, keyChannel('commands', pattern, purpose)])),
  ...Object.fromEntries(ALL_EVENTS.map(({ type, purpose }) => [type, keyChannel('events', type, purpose)])),
  replies: repliesChannel(),
  ...queueChannels(),
});

function exchangeBinding(wanted: ExchangeName) {
  const { name, type } = EXCHANGES.find(({ name }) => name === wanted)!;
  const exchange = { name, type, durable: true, autoDelete: false, vhost: '/' };
  return { amqp: { is: 'routingKey', exchange, bindingVersion: BINDING_VERSION } };
}

function keyChannel(exchange: ExchangeName, key: string, description: string): ChannelObject {
  const bound = BINDINGS.filter((binding) => binding.exchange === exchange && binding.routingKey === key);
  return {
    address: key,
    title: key,
    description,
    messages: { [key]: ref('messages', key) },
    bindings: exchangeBinding(exchange),
    'x-queues': bound.map(({ queue }) => queue),
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

/** The queues that messages come to as they were published, and the dead letters. */
function queueChannels(): Record<string, ChannelObject> {
  const channels: Record<string, ChannelObject> = {};
  for (const queue of QUEUES) {
    const keys = BINDINGS.filter(({ exchange, ...binding }) => binding.queue === queue.name && exchange !== 'retry');
    if (keys.length === 0) continue;
    const isDead = keys.some(({ exchange }) => exchange === 'dead');
    channels[queue.name] = isDead
      ? queueChannel(
          queue,
          'Commands of the service, and events that it listens to, that were given up: for people, with `npm run dead-letters`.',
          ['deadLetter'],
        )
      : queueChannel(
          queue,
          'Consumed by the service; bound to one routing key for each message.',
          keys.map(({ routingKey }) => routingKey),
        );
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
