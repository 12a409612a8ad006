import { ALL_MESSAGES } from '@app/contracts/all-messages';
import { ApiKeyRevoked } from '@app/contracts/events.users';
import type { CallerName, Message, ServiceName } from '@app/contracts/message';
import { AddNotification } from '@app/contracts/notifications.add';
import { consumedQueues } from '@app/rabbitmq/topology/consumed-queues';
import { LANES, STANDBY_EXCHANGE, type ExchangeName, type Lane } from '@app/rabbitmq/topology/topology';

export const ACCOUNTS = ['gateway', 'users', 'notifications', 'publisher'] as const;
export type Account = (typeof ACCOUNTS)[number];

/** The rights of an account, as regular expressions over names; see https://www.rabbitmq.com/docs/access-control. */
export interface Rights {
  configure: string;
  write: string;
  read: string;
  /** Routing keys that it may publish to `calls`, `calls.standby` and the exchanges of the lanes; counts only where `write` has the exchange. */
  commands: string;
  /** Types of events that it may bind a queue of its own to; counts only where `read` has exchange `events` or `events.own`. */
  events: string;
}

const NOTHING = '^$';

/** The rights of an account in one topic exchange. */
export interface TopicRights {
  exchange: ExchangeName;
  write: string;
  read: string;
}

/** The rights of an account for each topic exchange. */
export const topicRights = ({ commands, events }: Rights): TopicRights[] => [
  ...(['calls', STANDBY_EXCHANGE, ...LANES] as const).map((exchange) => ({ exchange, write: commands, read: NOTHING })),
  // `write` matters only together with a permission for the exchange, which only services have.
  ...(['events.own', 'events'] as const).map((exchange) => ({ exchange, write: '.*', read: events })),
];

/** The broker's names for the queues of one connection: for replies, and for events that each process has to hear. */
const OWN_QUEUE = 'amq.gen-*';

/** One of these names and nothing else; `*` stands for any rest. */
const oneOf = (...names: string[]): string => {
  if (names.length === 0) return NOTHING;
  const patterns = names.map((name) => name.replaceAll('.', '\\.').replace('*', '.*'));
  return names.length === 1 ? `^${patterns[0]}$` : `^(${patterns.join('|')})$`;
};

const keysOf = (...messages: Pick<Message<unknown, unknown>, 'pattern'>[]) => oneOf(...messages.map(({ pattern }) => pattern));

const consumed = (service: ServiceName) => consumedQueues(service, ['commands', 'queries', 'events'], 1).map(({ name }) => name);

/** Messages that a process of this system publishes, as their declarations say. */
const publishedBy = (caller: CallerName) => ALL_MESSAGES.filter(({ callers }) => callers.includes(caller));

/** The exchanges for calls, lane 0 for services of versions without lanes (see CALLS_EXCHANGE), and the queue for replies. */
const TO_CALL = ['calls', STANDBY_EXCHANGE, 'commands', OWN_QUEUE];

function rightsOf(service: ServiceName): Rights {
  const asked = publishedBy(service);
  const asks = asked.length > 0;
  return {
    configure: oneOf(...(asks ? [OWN_QUEUE] : [])),
    write: oneOf(...(asks ? TO_CALL : []), 'replies', 'events.own', 'events', 'retry', 'dead'),
    read: oneOf(...(asks ? ['replies', OWN_QUEUE] : []), ...consumed(service)),
    commands: keysOf(...asked),
    events: NOTHING,
  };
}

/** The least that each account needs. `publisher` is a service that publishes notifications and does not wait. */
export const RIGHTS: Readonly<Record<Account, Rights>> = {
  gateway: {
    configure: oneOf(OWN_QUEUE),
    write: oneOf(...TO_CALL),
    read: oneOf('replies', 'events.own', OWN_QUEUE),
    commands: keysOf(...publishedBy('gateway')),
    events: oneOf(ApiKeyRevoked.type),
  },
  users: rightsOf('users'),
  notifications: rightsOf('notifications'),
  publisher: { configure: NOTHING, write: oneOf('commands'), read: NOTHING, commands: keysOf(AddNotification), events: NOTHING },
};

/** The purpose of an account of another service. */
export interface AccountPurpose {
  /** Routing keys of messages that are open to accounts. */
  operations: readonly string[];
  /** Which exchange it publishes to, of `LANES`; undefined when it publishes nothing. */
  lane?: Lane;
  /** Whether it waits for replies. */
  replies: boolean;
  /** Types of events that it listens to, in queues that the tool declares and whose names begin with its own and a dot. */
  events: readonly string[];
}

/** The least that another service needs. It declares and binds no queue but that of its replies: what it could declare might hold up others. */
export function rightsFor(name: string, { operations, lane, replies, events }: AccountPurpose): Rights {
  const listens = events.length > 0;
  const own = replies ? [OWN_QUEUE] : [];
  return {
    configure: oneOf(...own),
    // An event that a listener cannot handle goes to the exchange of its dead letters.
    write: oneOf(...(lane === undefined ? [] : [LANES[lane]]), ...own, ...(listens ? [`${name}.*.dead`] : [])),
    read: oneOf(...(replies ? ['replies'] : []), ...own, ...(listens ? [`${name}.*`] : [])),
    commands: oneOf(...operations),
    // Says what it was made for: without the right to read the exchange it binds nothing.
    events: oneOf(...events),
  };
}
