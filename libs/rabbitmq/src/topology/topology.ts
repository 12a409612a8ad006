import { SUBSCRIPTIONS } from '@app/contracts/all-events';
import { ALL_MESSAGES, OPEN_MESSAGES } from '@app/contracts/all-messages';
import type { Message, ServiceName } from '@app/contracts/message';

/**
 * The exchanges and who publishes to them. All durable. Right to write to an exchange is what the broker vouches for: so each lane has one.
 * See {@link LANES}.
 */
export const EXCHANGES = [
  { name: 'calls', type: 'topic', purpose: 'Commands and queries that the gateway and the services wait for, from them only.' },
  { name: 'commands', type: 'topic', purpose: 'Commands and queries of other services: lane 0.' },
  { name: 'commands.1', type: 'topic', purpose: 'Commands and queries of other services: lane 1.' },
  { name: 'commands.2', type: 'topic', purpose: 'Commands and queries of other services: lane 2.' },
  { name: 'commands.3', type: 'topic', purpose: 'Commands and queries of other services: lane 3.' },
  { name: 'replies', type: 'direct', purpose: 'Replies of services, to the reply queue of the caller.' },
  {
    name: 'events.own',
    type: 'topic',
    purpose: 'What happened, for the processes of this system, from the outboxes of services.',
  },
  { name: 'events', type: 'topic', purpose: 'What happened, for other services, from the outboxes of services.' },
  {
    name: 'retry',
    type: 'direct',
    purpose: 'Commands that failed and are tried again, suspects and replays, from services and the operator only.',
  },
  { name: 'dead', type: 'direct', purpose: 'Commands that were given up, from services and the broker itself.' },
] as const;

export type ExchangeName = (typeof EXCHANGES)[number]['name'];

/**
 * Where accounts of other services publish to, one exchange each. A lane has queues of its own, so that a backlog in one delays nobody in
 * another. Lane 0 is also that of accounts made before there were lanes.
 */
export const LANES = ['commands', 'commands.1', 'commands.2', 'commands.3'] as const satisfies ExchangeName[];
export type Lane = 0 | 1 | 2 | 3;
export const LANE_NUMBERS: readonly Lane[] = [0, 1, 2, 3];

/** How long a command waits before each further try; the last delay repeats. One queue each: a queue expires messages only at its head. */
export const RETRY_DELAYS = [
  { name: '1s', milliseconds: 1000 },
  { name: '5s', milliseconds: 5000 },
  { name: '30s', milliseconds: 30_000 },
  { name: '5m', milliseconds: 300_000 },
] as const;

/** Commands that the gateway or a service waits for. */
export const callQueue = (service: ServiceName) => `${service}.calls`;
/** Queries of the gateway and the services. */
export const callQueryQueue = (service: ServiceName) => `${service}.calls.queries`;
/** Commands of other services. */
export const commandQueue = (service: ServiceName, lane: Lane) => `${service}.commands.${lane}`;
/** Commands of all other services in versions without lanes: consumed until it is empty, and for one release more. */
export const earlierCommandQueue = (service: ServiceName) => `${service}.commands`;
/** Queries of other services. */
export const queryQueue = (service: ServiceName, lane: Lane) =>
  lane === 0 ? `${service}.queries` : `${service}.queries.${lane}`;
/** The events that the service listens to. */
export const eventQueue = (service: ServiceName) => `${service}.events`;
export const retryQueue = (service: ServiceName, delay: (typeof RETRY_DELAYS)[number]) => `${service}.retry.${delay.name}`;
/** Commands that come back from a retry queue, or were replayed. */
export const againQueue = (service: ServiceName) => `${service}.again`;
/** Commands that may have crashed their consumer, to be handled alone. */
export const suspectQueue = (service: ServiceName) => `${service}.suspects`;
/** Commands that this system could not carry out: bugs, and tries used up. */
export const deadQueue = (service: ServiceName) => `${service}.commands.dead`;
/** Commands that crashed their consumers, until the broker gave them up. */
export const crashedQueue = (service: ServiceName) => `${service}.commands.crashed`;
/** Commands that were refused because of what their publisher sent. */
export const refusedQueue = (service: ServiceName) => `${service}.commands.refused`;
/** Every queue of dead letters, for people. */
export const letterQueues = (service: ServiceName) => [deadQueue, crashedQueue, refusedQueue].map((queue) => queue(service));

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

const limits = (messages: number, mebibytes: number, overflow: 'reject-publish' | 'drop-head') => ({
  'x-max-length': messages,
  'x-max-length-bytes': mebibytes * MEBIBYTE,
  'x-overflow': overflow,
});

/** Full means refused, never dropped: the publisher gets a nack and nothing is lost in silence. */
const refusing = (messages: number, mebibytes: number) => limits(messages, mebibytes, 'reject-publish');

/** Full means that the oldest goes: nobody waits for room. */
const dropping = (messages: number, mebibytes: number) => limits(messages, mebibytes, 'drop-head');

const deadLettersTo = (exchange: ExchangeName, routingKey: string) => ({
  'x-dead-letter-exchange': exchange,
  'x-dead-letter-routing-key': routingKey,
  // The default strategy loses what its target does not take. This one needs reject-publish and a length limit.
  'x-dead-letter-strategy': 'at-least-once',
});

const quorum = (
  name: string,
  deliveryLimit: number | undefined,
  ...more: Readonly<Record<string, string | number>>[]
): QueueDeclaration => ({
  name,
  arguments: Object.assign(
    { 'x-queue-type': 'quorum', ...(deliveryLimit !== undefined && { 'x-delivery-limit': deliveryLimit }) },
    ...more,
  ) as QueueDeclaration['arguments'],
});

const classic = (name: string): QueueDeclaration => ({
  name,
  arguments: { 'x-queue-type': 'classic', ...refusing(10_000, 64) },
});

/** Explicit, because 4.x has a default of 20. A command that is delivered in vain becomes a suspect long before. */
const NEVER = 1_000_000;

const listens = (service: ServiceName) => SUBSCRIPTIONS[service].length > 0;

// Types and limits are all explicit, because defaults differ: 4.x has a default delivery limit, and any virtual host may have another
// default queue type. Only arguments that RabbitMQ 3.10 and 4.x both accept.
// A queue that other services can publish to has no dead-letter exchange: the broker reads a publisher's `x-death` when it dead-letters, and up
// to RabbitMQ 3.12 a message with `x-death: ['x']` and an expiration ends dead-lettering on its whole node. What expires in a lane is gone, as
// its publisher has asked.
// A queue that others dead-letter into must not refuse: the broker tries again only every 180 s. It drops its head, or has room for all that
// the others may hold.
function queuesOf(service: ServiceName): QueueDeclaration[] {
  return [
    quorum(callQueue(service), NEVER, refusing(20_000, 128)),
    classic(callQueryQueue(service)),
    ...LANE_NUMBERS.map((lane) => quorum(commandQueue(service, lane), NEVER, refusing(50_000, 128))),
    // Only retry queues of versions without lanes bring anything in.
    quorum(earlierCommandQueue(service), 20, deadLettersTo('dead', earlierCommandQueue(service)), refusing(100_000, 256)),
    ...LANE_NUMBERS.map((lane) => classic(queryQueue(service, lane))),
    ...RETRY_DELAYS.map((delay) =>
      quorum(
        retryQueue(service, delay),
        undefined,
        { 'x-message-ttl': delay.milliseconds },
        deadLettersTo('retry', againQueue(service)),
        refusing(25_000, 64),
      ),
    ),
    // Twice what the retry queues hold.
    quorum(againQueue(service), NEVER, refusing(200_000, 512)),
    // A message that was redelivered from here was the only one in its process. More than one, because a lost connection counts as well.
    quorum(suspectQueue(service), 3, deadLettersTo('dead', crashedQueue(service)), refusing(25_000, 64)),
    // Looking at a dead letter and putting it back counts as a delivery.
    quorum(deadQueue(service), NEVER, refusing(100_000, 256)),
    // Each letter has ended four processes.
    quorum(crashedQueue(service), NEVER, refusing(1_000_000, 1024)),
    quorum(refusedQueue(service), NEVER, dropping(100_000, 256)),
    ...(listens(service)
      ? // Full, it holds up the outbox of its publisher, and nothing is lost.
        [quorum(eventQueue(service), 20, deadLettersTo('dead', earlierCommandQueue(service)), refusing(1_000_000, 1024))]
      : []),
  ];
}

const isCommand = ({ kind }: Message<object, object>) => kind === 'command';

/** A binding for each operation and no wildcards, so that a routing key without a consumer is returned to its publisher. */
const callBinding = (message: Message<object, object>): BindingDeclaration => ({
  exchange: 'calls',
  routingKey: message.pattern,
  queue: isCommand(message) ? callQueue(message.service) : callQueryQueue(message.service),
});

const laneBinding = (message: Message<object, object>, lane: Lane): BindingDeclaration => ({
  exchange: LANES[lane],
  routingKey: message.pattern,
  queue: isCommand(message) ? commandQueue(message.service, lane) : queryQueue(message.service, lane),
});

/** Retry queues, and what comes back out of them; suspects; the dead letters. */
function failureBindings(service: ServiceName): BindingDeclaration[] {
  const byName = (exchange: 'retry' | 'dead', queue: string) => ({ exchange, routingKey: queue, queue });
  return [
    ...RETRY_DELAYS.map((delay) => byName('retry', retryQueue(service, delay))),
    byName('retry', againQueue(service)),
    byName('retry', suspectQueue(service)),
    byName('dead', deadQueue(service)),
    byName('dead', crashedQueue(service)),
    byName('dead', refusedQueue(service)),
    // The events and the earlier queue dead-letter with this key, and services of versions without lanes all their letters.
    { exchange: 'dead', routingKey: earlierCommandQueue(service), queue: refusedQueue(service) },
  ];
}

export const SERVICES = [...new Set(ALL_MESSAGES.map(({ service }) => service))];

/** Every queue; all durable. The arguments of a queue that exists cannot change: give it a new name, or use a policy. */
export const QUEUES: readonly QueueDeclaration[] = SERVICES.flatMap(queuesOf);

/** Bindings of lane 0, to the queue of commands that is named. All messages, because gateways of versions without lanes publish there. */
export const laneZeroBindings = (commandsTo: (service: ServiceName) => string): readonly BindingDeclaration[] =>
  ALL_MESSAGES.map((message) => ({
    ...laneBinding(message, 0),
    ...(isCommand(message) && { queue: commandsTo(message.service) }),
  }));

export const BINDINGS: readonly BindingDeclaration[] = [
  ...ALL_MESSAGES.map(callBinding),
  ...laneZeroBindings((service) => commandQueue(service, 0)),
  ...LANE_NUMBERS.slice(1).flatMap((lane) => OPEN_MESSAGES.map((message) => laneBinding(message, lane))),
  ...SERVICES.flatMap((service) =>
    SUBSCRIPTIONS[service].map(({ type }) => ({ exchange: 'events.own' as const, routingKey: type, queue: eventQueue(service) })),
  ),
  ...SERVICES.flatMap(failureBindings),
];
