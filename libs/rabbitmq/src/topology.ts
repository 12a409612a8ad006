import { SUBSCRIPTIONS } from '@app/contracts/all-events';
import { ALL_MESSAGES } from '@app/contracts/all-messages';
import type { Message, ServiceName } from '@app/contracts/message';

/** The exchanges and who publishes to them. All durable. */
export const EXCHANGES = [
  { name: 'commands', type: 'topic', purpose: 'Commands and queries, from the gateway and internal services.' },
  { name: 'replies', type: 'direct', purpose: 'Replies of services, to the reply queue of the caller.' },
  { name: 'events', type: 'topic', purpose: 'What happened, from the outboxes of services.' },
  { name: 'retry', type: 'direct', purpose: 'Commands that failed and are tried again, and suspects, from services only.' },
  { name: 'dead', type: 'direct', purpose: 'Commands that were given up, from services and the broker itself.' },
] as const;

export type ExchangeName = (typeof EXCHANGES)[number]['name'];

/** How long a command waits before each further try; the last delay repeats. One queue each: a queue expires messages only at its head. */
export const RETRY_DELAYS = [
  { name: '1s', milliseconds: 1000 },
  { name: '5s', milliseconds: 5000 },
  { name: '30s', milliseconds: 30_000 },
  { name: '5m', milliseconds: 300_000 },
] as const;

export const commandQueue = (service: ServiceName) => `${service}.commands`;
/** What the service is told. */
export const eventQueue = (service: ServiceName) => `${service}.events`;
export const queryQueue = (service: ServiceName) => `${service}.queries`;
export const deadQueue = (service: ServiceName) => `${commandQueue(service)}.dead`;
/** What may have crashed its consumer, to be handled alone. */
export const suspectQueue = (service: ServiceName) => `${commandQueue(service)}.suspects`;
export const retryQueue = (service: ServiceName, delay: (typeof RETRY_DELAYS)[number]) =>
  `${commandQueue(service)}.retry.${delay.name}`;

export interface QueueDeclaration {
  readonly name: string;
  readonly arguments: Readonly<Record<string, string | number>>;
}

export interface BindingDeclaration {
  readonly exchange: ExchangeName;
  readonly routingKey: string;
  readonly queue: string;
}

const MEBIBYTE = 1024 * 1024;

/** Full means refused, never dropped: the publisher is told by a nack and nothing is lost in silence. */
const bounded = (messages: number, bytes: number) => ({
  'x-max-length': messages,
  'x-max-length-bytes': bytes,
  'x-overflow': 'reject-publish',
});

const deadLettersTo = (exchange: ExchangeName, routingKey: string) => ({
  'x-dead-letter-exchange': exchange,
  'x-dead-letter-routing-key': routingKey,
  // The default strategy loses what its target does not take. This one needs reject-publish and a length limit.
  'x-dead-letter-strategy': 'at-least-once',
});

const listens = (service: ServiceName) => SUBSCRIPTIONS[service].length > 0;

// Types and limits are all explicit, because defaults differ: 4.x has a default delivery limit, and any virtual host may have another
// default queue type. Only arguments that RabbitMQ 3.10 and 4.x both accept.
function queuesOf(service: ServiceName): QueueDeclaration[] {
  const commands = commandQueue(service);
  return [
    {
      name: commands,
      arguments: {
        'x-queue-type': 'quorum',
        // Reached only by crashes and lost connections, when the suspects cannot be moved: what a handler throws never counts.
        'x-delivery-limit': 20,
        ...deadLettersTo('dead', commands),
        ...bounded(100_000, 256 * MEBIBYTE),
      },
    },
    {
      name: suspectQueue(service),
      arguments: {
        'x-queue-type': 'quorum',
        // Whoever comes back from here did it alone. More than one, because a lost connection counts as well.
        'x-delivery-limit': 3,
        ...deadLettersTo('dead', commands),
        ...bounded(100_000, 256 * MEBIBYTE),
      },
    },
    {
      name: deadQueue(service),
      arguments: {
        'x-queue-type': 'quorum',
        // Looking at a dead letter and putting it back counts as a delivery: 4.x would drop it after twenty looks.
        'x-delivery-limit': 1_000_000,
        ...bounded(100_000, 256 * MEBIBYTE),
      },
    },
    ...RETRY_DELAYS.map((delay) => ({
      name: retryQueue(service, delay),
      arguments: {
        'x-queue-type': 'quorum',
        'x-message-ttl': delay.milliseconds,
        ...deadLettersTo('retry', commands),
        ...bounded(100_000, 256 * MEBIBYTE),
      },
    })),
    { name: queryQueue(service), arguments: { 'x-queue-type': 'classic', ...bounded(10_000, 64 * MEBIBYTE) } },
    ...(listens(service)
      ? [
          {
            name: eventQueue(service),
            arguments: {
              'x-queue-type': 'quorum',
              'x-delivery-limit': 20,
              ...deadLettersTo('dead', commands),
              // Full, it holds up the outbox of who tells, and nothing is lost.
              ...bounded(1_000_000, 1024 * MEBIBYTE),
            },
          },
        ]
      : []),
  ];
}

/** A binding for each operation and no wildcards, so that a routing key nobody serves is returned to its publisher. */
const bindingOf = ({ kind, pattern, service }: Message<object, object>): BindingDeclaration => ({
  exchange: 'commands',
  routingKey: pattern,
  queue: kind === 'command' ? commandQueue(service) : queryQueue(service),
});

/** Retry queues, and what comes back out of them; suspects; the dead letters. */
function wayOfFailure(service: ServiceName): BindingDeclaration[] {
  const commands = commandQueue(service);
  return [
    ...RETRY_DELAYS.map((delay) => retryQueue(service, delay)).map((queue) => ({
      exchange: 'retry' as const,
      routingKey: queue,
      queue,
    })),
    { exchange: 'retry', routingKey: commands, queue: commands },
    { exchange: 'retry', routingKey: suspectQueue(service), queue: suspectQueue(service) },
    { exchange: 'dead', routingKey: commands, queue: deadQueue(service) },
  ];
}

export const SERVICES = [...new Set(ALL_MESSAGES.map(({ service }) => service))];

/** Every queue; all durable. The arguments of a queue that exists cannot change: give it a new name, or use a policy. */
export const QUEUES: readonly QueueDeclaration[] = SERVICES.flatMap(queuesOf);

export const BINDINGS: readonly BindingDeclaration[] = [
  ...ALL_MESSAGES.map(bindingOf),
  ...SERVICES.flatMap((service) =>
    SUBSCRIPTIONS[service].map(({ type }) => ({ exchange: 'events' as const, routingKey: type, queue: eventQueue(service) })),
  ),
  ...SERVICES.flatMap(wayOfFailure),
];
