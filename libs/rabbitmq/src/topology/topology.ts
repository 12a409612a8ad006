import { SUBSCRIPTIONS } from '@app/contracts/all-events';
import { ALL_MESSAGES, OPEN_MESSAGES } from '@app/contracts/all-messages';
import type { Message, ServiceName } from '@app/contracts/message';

/**
 * The exchanges and their publishers. All durable. The broker grants write permission by exchange, so each lane has its own: see {@link LANES}.
 */
export const EXCHANGES = [
  { name: 'calls', type: 'topic', purpose: 'Commands and queries from the gateway and the services, which wait for the reply.' },
  {
    name: 'calls.standby',
    type: 'topic',
    purpose: 'Queries from the gateway and the services while the broker node of their usual queue is away.',
  },
  { name: 'commands', type: 'topic', purpose: 'Commands and queries of other services: lane 0.' },
  { name: 'commands.1', type: 'topic', purpose: 'Commands and queries of other services: lane 1.' },
  { name: 'commands.2', type: 'topic', purpose: 'Commands and queries of other services: lane 2.' },
  { name: 'commands.3', type: 'topic', purpose: 'Commands and queries of other services: lane 3.' },
  { name: 'replies', type: 'direct', purpose: 'Replies from services to the reply queue of the caller.' },
  {
    name: 'events.own',
    type: 'topic',
    purpose: 'Events from the outboxes of services, for the processes of this system.',
  },
  { name: 'events', type: 'topic', purpose: 'Events from the outboxes of services, for other services.' },
  {
    name: 'retry',
    type: 'direct',
    purpose:
      'Retries of failed commands, suspects, replayed dead letters and checks of the broker. Only services and the operator publish here.',
  },
  { name: 'dead', type: 'direct', purpose: 'Dead letters, from services and from the broker itself.' },
] as const;

export type ExchangeName = (typeof EXCHANGES)[number]['name'];

/** Queries go here while the broker node of their queue is away. */
export const STANDBY_EXCHANGE = 'calls.standby' satisfies ExchangeName;

/**
 * The lanes: exchanges to which accounts of other services publish, one lane for each account. A lane has its own queues, so a backlog in one
 * lane does not delay another. Accounts from before there were lanes use lane 0.
 */
export const LANES = ['commands', 'commands.1', 'commands.2', 'commands.3'] as const satisfies ExchangeName[];
export type Lane = 0 | 1 | 2 | 3;
export const LANE_NUMBERS: readonly Lane[] = [0, 1, 2, 3];

/** Delays before each retry; the last one repeats. One queue for each delay, because a queue expires messages only at its head. */
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
/** The same queries while the broker node of that queue is away. */
export const standbyQueryQueue = (service: ServiceName) => `${service}.calls.queries.standby`;
/** Commands of other services. */
export const commandQueue = (service: ServiceName, lane: Lane) => `${service}.commands.${lane}`;
/** Commands of all other services in versions without lanes. Consumed until it is empty, and for one more release. */
export const earlierCommandQueue = (service: ServiceName) => `${service}.commands`;
/** Queries of other services. */
export const queryQueue = (service: ServiceName, lane: Lane) =>
  lane === 0 ? `${service}.queries` : `${service}.queries.${lane}`;
/** The events that the service listens to. */
export const eventQueue = (service: ServiceName) => `${service}.events`;
export const retryQueue = (service: ServiceName, delay: (typeof RETRY_DELAYS)[number]) => `${service}.retry.${delay.name}`;
/** Commands after their retry delay, and replayed dead letters. */
export const againQueue = (service: ServiceName) => `${service}.again`;
/** Suspects: commands that may have crashed their consumer. They are handled alone. */
export const suspectQueue = (service: ServiceName) => `${service}.suspects`;
/** Dead letters caused by this system: bugs, and retries used up. */
export const deadQueue = (service: ServiceName) => `${service}.commands.dead`;
/** Dead letters that crashed their consumers too often. */
export const crashedQueue = (service: ServiceName) => `${service}.commands.crashed`;
/** Dead letters caused by the publisher: it sent a command that is refused. */
export const refusedQueue = (service: ServiceName) => `${service}.commands.refused`;
/** Every dead-letter queue of a service. Only operators read these queues. */
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

/** A full queue refuses: the publisher gets a nack, and no message is lost silently. */
const refusing = (messages: number, mebibytes: number) => limits(messages, mebibytes, 'reject-publish');

/** A full queue drops its oldest message, so that publishers never wait for room. */
const dropping = (messages: number, mebibytes: number) => limits(messages, mebibytes, 'drop-head');

const deadLettersTo = (exchange: ExchangeName, routingKey: string) => ({
  'x-dead-letter-exchange': exchange,
  'x-dead-letter-routing-key': routingKey,
  // The default strategy, at-most-once, loses messages that the target refuses. This one needs reject-publish and a length limit.
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

/** Explicit, because RabbitMQ 4.x has a default limit of 20. A command that is redelivered becomes a suspect long before. */
const NEVER = 1_000_000;

/** Processes that a suspect may end before it becomes a dead letter. */
export const MOST_CRASHES = 4;

const listens = (service: ServiceName) => SUBSCRIPTIONS[service].length > 0;

// All types and limits are explicit, because defaults differ: 4.x has a default delivery limit, and each virtual host may have its own default
// queue type. Only arguments that both RabbitMQ 3.10 and 4.x accept.
// A queue that other services can publish to has no dead-letter exchange. The broker parses a publisher's `x-death` when it dead-letters, and
// up to RabbitMQ 3.12 a message with `x-death: ['x']` and an expiration stops dead-lettering on the whole node. A message that expires in a
// lane is lost, as its publisher asked.
// A target of dead-lettering must not refuse, because the broker retries only every 180 s. It drops its head, or has room for the content of
// all its sources.
function queuesOf(service: ServiceName): QueueDeclaration[] {
  return [
    quorum(callQueue(service), NEVER, refusing(20_000, 128)),
    // A classic queue is on one node. As a quorum queue it made a read at one connection 30 % slower.
    classic(callQueryQueue(service)),
    quorum(standbyQueryQueue(service), NEVER, refusing(10_000, 64)),
    ...LANE_NUMBERS.map((lane) => quorum(commandQueue(service, lane), NEVER, refusing(50_000, 128))),
    // Only retry queues of versions without lanes still send messages here.
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
    // Twice the capacity of the retry queues.
    quorum(againQueue(service), NEVER, refusing(200_000, 512)),
    // A message redelivered from this queue was the only one in its process. The limit is 3, not 1, because a lost connection counts too.
    quorum(suspectQueue(service), MOST_CRASHES - 1, deadLettersTo('dead', crashedQueue(service)), refusing(25_000, 64)),
    // When an operator looks at a dead letter and puts it back, that counts as a delivery.
    quorum(deadQueue(service), NEVER, refusing(100_000, 256)),
    quorum(crashedQueue(service), NEVER, refusing(1_000_000, 1024)),
    quorum(refusedQueue(service), NEVER, dropping(100_000, 256)),
    ...(listens(service)
      ? // When it is full, the outbox of the publisher waits, and no event is lost.
        [quorum(eventQueue(service), 20, deadLettersTo('dead', earlierCommandQueue(service)), refusing(1_000_000, 1024))]
      : []),
  ];
}

const isCommand = ({ kind }: Message<object, object>) => kind === 'command';

/** One binding for each operation and no wildcards, so that a message with an unknown routing key is returned to its publisher. */
const callBinding = (message: Message<object, object>): BindingDeclaration => ({
  exchange: 'calls',
  routingKey: message.pattern,
  queue: isCommand(message) ? callQueue(message.service) : callQueryQueue(message.service),
});

const standbyBinding = ({ pattern, service }: Message<object, object>): BindingDeclaration => ({
  exchange: STANDBY_EXCHANGE,
  routingKey: pattern,
  queue: standbyQueryQueue(service),
});

const laneBinding = (message: Message<object, object>, lane: Lane): BindingDeclaration => ({
  exchange: LANES[lane],
  routingKey: message.pattern,
  queue: isCommand(message) ? commandQueue(message.service, lane) : queryQueue(message.service, lane),
});

/** Bindings of the retry queues, of the queue for retried messages, of the suspects and of the dead letters. */
function failureBindings(service: ServiceName): BindingDeclaration[] {
  const byName = (exchange: 'retry' | 'dead', queue: string) => ({ exchange, routingKey: queue, queue });
  return [
    ...RETRY_DELAYS.map((delay) => byName('retry', retryQueue(service, delay))),
    byName('retry', againQueue(service)),
    byName('retry', suspectQueue(service)),
    byName('dead', deadQueue(service)),
    byName('dead', crashedQueue(service)),
    byName('dead', refusedQueue(service)),
    // Dead letters with this key come from the event queue, from the earlier queue, and from services of versions without lanes.
    { exchange: 'dead', routingKey: earlierCommandQueue(service), queue: refusedQueue(service) },
  ];
}

/** Where services publish to find out whether their broker node reaches a majority of the nodes. */
export const QUORUM_CHECK = { exchange: 'retry', routingKey: 'quorum.check' } as const satisfies Omit<
  BindingDeclaration,
  'queue'
>;

/** Always empty: it takes each message, and drops it. */
const CHECK_QUEUE = quorum('quorum.check', undefined, dropping(0, 1));

export const SERVICES = [...new Set(ALL_MESSAGES.map(({ service }) => service))];

/** Every queue; all durable. The arguments of an existing queue cannot change: use a new name or a policy. */
export const QUEUES: readonly QueueDeclaration[] = [...SERVICES.flatMap(queuesOf), CHECK_QUEUE];

/** Bindings of lane 0 to the given command queue. All messages, because gateways of versions without lanes publish there. */
export const laneZeroBindings = (commandsTo: (service: ServiceName) => string): readonly BindingDeclaration[] =>
  ALL_MESSAGES.map((message) => ({
    ...laneBinding(message, 0),
    ...(isCommand(message) && { queue: commandsTo(message.service) }),
  }));

export const BINDINGS: readonly BindingDeclaration[] = [
  ...ALL_MESSAGES.map(callBinding),
  ...ALL_MESSAGES.filter((message) => !isCommand(message)).map(standbyBinding),
  ...laneZeroBindings((service) => commandQueue(service, 0)),
  ...LANE_NUMBERS.slice(1).flatMap((lane) => OPEN_MESSAGES.map((message) => laneBinding(message, lane))),
  ...SERVICES.flatMap((service) =>
    SUBSCRIPTIONS[service].map(({ type }) => ({ exchange: 'events.own' as const, routingKey: type, queue: eventQueue(service) })),
  ),
  ...SERVICES.flatMap(failureBindings),
  { ...QUORUM_CHECK, queue: CHECK_QUEUE.name },
];
