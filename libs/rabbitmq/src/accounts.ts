import type { Message, ServiceName } from '@app/contracts/message';
import { AddNotification } from '@app/contracts/notifications.add';
import { SUBSCRIPTIONS } from '@app/contracts/all-events';
import { ListMemberships } from '@app/contracts/memberships.list';
import { GetNotifications } from '@app/contracts/notifications.get';
import { AddUsers } from '@app/contracts/users.add';
import { Authenticate } from '@app/contracts/users.authenticate';
import { Authorize } from '@app/contracts/users.authorize';
import { Exists } from '@app/contracts/users.exists';
import { commandQueue, eventQueue, queryQueue, suspectQueue } from './topology';

export const ACCOUNTS = ['gateway', 'users', 'notifications', 'publisher'] as const;
export type Account = (typeof ACCOUNTS)[number];

/** What an account may do, as regular expressions over names; see https://www.rabbitmq.com/docs/access-control. */
export interface Rights {
  configure: string;
  write: string;
  read: string;
  /** Routing keys that it may publish to exchange `commands`. */
  commands: string;
}

const NOTHING = '^$';
/** What the broker calls the reply queues. */
const REPLY_QUEUE = 'amq.gen-*';

/** One of these names and nothing else; `*` stands for any rest. */
const oneOf = (...names: string[]): string => {
  const patterns = names.map((name) => name.replaceAll('.', '\\.').replace('*', '.*'));
  return names.length === 1 ? `^${patterns[0]}$` : `^(${patterns.join('|')})$`;
};

const keysOf = (...messages: Pick<Message<unknown, unknown>, 'pattern'>[]) => oneOf(...messages.map(({ pattern }) => pattern));

const consumed = (service: ServiceName) => [
  commandQueue(service),
  suspectQueue(service),
  queryQueue(service),
  ...(SUBSCRIPTIONS[service].length > 0 ? [eventQueue(service)] : []),
];

/** The least that each account needs. `publisher` is a service that publishes notifications and does not wait. */
export const RIGHTS: Readonly<Record<Account, Rights>> = {
  gateway: {
    configure: oneOf(REPLY_QUEUE),
    write: oneOf('commands', REPLY_QUEUE),
    read: oneOf('replies', REPLY_QUEUE),
    commands: keysOf(AddUsers, Authenticate, AddNotification, GetNotifications),
  },
  users: {
    configure: NOTHING,
    write: oneOf('replies', 'events', 'retry', 'dead'),
    read: oneOf(...consumed('users')),
    commands: NOTHING,
  },
  notifications: {
    configure: oneOf(REPLY_QUEUE),
    write: oneOf('commands', 'replies', 'events', 'retry', 'dead', REPLY_QUEUE),
    read: oneOf('replies', REPLY_QUEUE, ...consumed('notifications')),
    commands: keysOf(Authorize, Exists, ListMemberships),
  },
  publisher: { configure: NOTHING, write: oneOf('commands'), read: NOTHING, commands: keysOf(AddNotification) },
};
