// A publisher that forges headers: it pretends to be a service, to have failed before, or to be another account.
import { attackBy } from './broker-client.mjs';
import { commandOf } from './publisher.mjs';

const BACKLOG = 5000;
const PER_SECOND = 200;

/** @param {string} queue @param {string} exchange @param {string} reason */
const death = (queue, exchange, reason) => [
  {
    queue,
    reason,
    exchange,
    'routing-keys': ['notifications.add.v1'],
    count: 1,
    time: { '!': 'timestamp', value: 1_700_000_000 },
  },
];

const OPERATION = { 'x-routing-key': 'notifications.add.v1' };
/** Forged headers of services, each with the key of a tenant for which the account has no grant. */
const FORGERIES = [
  { 'x-origin-user': 'gateway' },
  { ...OPERATION, 'x-origin-user': 'gateway', 'x-death': death('notifications.commands.0', 'retry', 'expired') },
  { ...OPERATION, 'x-origin-user': 'gateway', 'x-death': death('notifications.retry.1s', 'retry', 'expired') },
  { ...OPERATION, 'x-origin-user': 'notifications', 'x-death': death('notifications.commands.0', 'commands', 'rejected') },
  { 'x-origin-user': 'gateway', 'x-attempt': 3, ...OPERATION },
  {
    'x-origin-user': 'gateway',
    'x-dead-status': 'NOT_FOUND',
    'x-dead-reason': 'forged',
    'x-routing-key': 'notifications.add.v1',
  },
  { 'x-origin-user': 'users', 'x-delivery-count': 7, 'x-acquired-count': 7 },
  {
    'x-first-death-exchange': 'retry',
    'x-first-death-queue': 'notifications.retry.1s',
    'x-first-death-reason': 'expired',
  },
  { 'x-origin-user': 'gateway', CC: ['notifications.commands.0', 'users.add.v1'] },
  { 'x-origin-user': 'gateway', BCC: ['notifications.commands.0', 'documents.set.v1'] },
  {},
];
/** Forged user_ids, besides the account itself. */
const NOBODY = { userId: undefined };

/** @type {import('./all.mjs').Attack[]} */
export const FORGERS = [
  {
    name: 'forged headers',
    why: 'A publisher may write any header: x-death, x-origin-user, x-attempt, x-routing-key, x-delivery-count, CC, BCC, no user_id.',
    start: (target) =>
      attackBy(target.publisher, async (client) => {
        // Messages with an expiration expire in the queue, and the broker adds its own entry to a forged x-death.
        await client.flood(BACKLOG, () => commandOf(target));
        let number = 0;
        await client.flood(
          Infinity,
          () => {
            const forgery = FORGERIES[number % FORGERIES.length];
            const round = Math.floor(number++ / FORGERIES.length);
            const headers = { ...forgery, 'x-api-key': target.victims[round % target.victims.length] };
            const expires = round % 2 ? { expiration: '1' } : {};
            return commandOf(target, { organizationId: 'forged' }, { headers, ...expires, ...(round % 3 === 0 && NOBODY) });
          },
          PER_SECOND,
        );
      }),
  },
];
