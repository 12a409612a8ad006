import { performance } from 'node:perf_hooks';
import { built } from './built.mjs';
import { FIRST_TIMESTAMP, ORGANIZATION, storeDocument, usersOf } from './seed.mjs';
import { median, spread, two, whole } from './statistics.mjs';

const TENANT = { apiKey: 'demo-key', organizationId: ORGANIZATION };
const TIMES = 20;
const MOST_DELETED = 256;

/**
 * A statement and its cost when it was designed, in ms, with a million notifications and without fsync.
 * @typedef {{ name: string, designed: string, times: number[] }} Cost
 */

/**
 * Times of statements about read state and deletion, on a connection as the service has it, in which nothing else happens.
 * @param {import('./ours.mjs').Ours} system with stored notifications; the service rests
 * @param {number} stored
 * @returns {Promise<import('./findings.mjs').Findings>}
 */
export async function measureStatements(system, stored) {
  const { createDataSource } = built('libs/postgres/src/connections/data-source');
  const { DATABASE } = built('apps/notifications/src/db/schema');
  const { InboxRepository } = built('apps/notifications/src/db/inbox.repository');
  const { ReadingsRepository } = built('apps/notifications/src/db/readings.repository');
  const { DeleteNotificationsRepository } = built('apps/notifications/src/db/delete-notifications.repository');
  const url = system.place.databaseUrl;
  const dataSource = createDataSource({ ...DATABASE, name: 'costs', url, poolSize: 1, genericPlans: true });
  await dataSource.initialize();
  const inboxes = new InboxRepository(dataSource);
  const readings = new ReadingsRepository(dataSource);
  const deletions = new DeleteNotificationsRepository(dataSource);
  /** @type {Cost[]} */
  const costs = [];
  /** @param {string} name @param {string} designed @param {(time: number) => Promise<unknown>} work */
  const time = async (name, designed, work) => {
    // Their events are nobody's, and publishing them would be other work.
    await system.sql.query('DELETE FROM notifications.outbox');
    const times = [];
    for (let number = 0; number < TIMES; number++) {
      const since = performance.now();
      await work(number);
      times.push(performance.now() - since);
    }
    costs.push({ name, designed, times });
  };
  /** @param {string} userId @param {number} size */
  const inbox = (userId, size) => inboxes.find({ ...TENANT, userId }, { size });
  /** @param {string} userId @param {number} readUpTo */
  const markUpTo = (userId, readUpTo) => readings.updateUpTo({ ...TENANT, userId, readUpTo });
  /** @param {string[]} ids @param {boolean} read */
  const markEach = (ids, read) => readings.updateEach({ ...TENANT, ids, pairs: ids.map((id) => ({ id, userId: 'busy', read })) });
  /** Notifications that name the busy user, the newest first. @param {number} from @param {number} count */
  const newest = (from, count) =>
    Array.from({ length: count }, (_, index) => `n${stored - 10 * (((from + index) % (stored / 10)) + 1)}`);
  const aReader = (/** @type {number} */ number) => `user${number % usersOf(stored)}`;
  try {
    await time('count, no mark, everything unread', '0.20', () => inbox('busy', 0));
    await time('page of 50 with count', '8.4', () => inbox('busy', 50));
    await time('page of 1,000 with count', '42', () => inbox('busy', 1000));
    await time('one notification read', 'under 1', (number) => markEach(newest(3000 + number, 1), true));
    await time('1,000 notifications read', '14.5', (number) => markEach(newest(4000 + 1000 * number, 1000), true));
    await time('all read up to now, first', '3.7–9', (number) => markUpTo(aReader(number), FIRST_TIMESTAMP + number));
    await time('all read up to now, again', '6', (number) => markUpTo(aReader(number), FIRST_TIMESTAMP + stored + number));
    await time('count, mark at the newest', '1.7', (number) => inbox(aReader(number), 0));
    for (const first of [0, 1000]) await markEach(newest(first, 1000), true);
    // The mark only moves up.
    for (const [read, designed] of /** @type {[number, string][]} */ ([
      [2000, '9.6'],
      [256, '2.5–6.6'],
      [50, '1.5–1.9'],
    ])) {
      await markUpTo('busy', FIRST_TIMESTAMP + stored - 10 * read - 1);
      if (read === 2000) await expectCount(inbox('busy', 0), 0);
      await time(`count, ${whole(read)} read singly above the mark`, designed, () => inbox('busy', 0));
    }
    await markEach(newest(3000, 1000), false);
    await time('the same, and 1,000 marked as unread below it', '28', () => inbox('busy', 0));
    for (const [recipients, notifications, designed] of /** @type {[number, number, string][]} */ ([
      [0, MOST_DELETED, '6.6'],
      [1000, 10, '25'],
    ])) {
      const documentId = `of ${recipients} `;
      await storeDocument(system.sql, documentId, notifications * TIMES, recipients);
      await time(`deletion of ${whole(notifications)} with ${whole(recipients)} recipients each`, designed, (number) =>
        deletions.delete({ ...TENANT, messageId: `${documentId} ${number}`, documentId }),
      );
    }
  } finally {
    await dataSource.destroy();
  }
  return {
    tables: [
      {
        title: `statements at ${whole(stored)} stored notifications, one connection: ms`,
        head: ['statement', 'median', 'lowest–highest', 'designed for'],
        rows: costs.map(({ name, designed, times }) => [name, two(median(times)), spread(times, (ms) => ms, two), designed]),
      },
    ],
  };
}

/** @param {Promise<{ unread: { count: number, more: boolean } }>} inbox @param {number} expected */
async function expectCount(inbox, expected) {
  const { unread } = await inbox;
  if (unread.count !== expected || unread.more) throw new Error(`the inbox has ${unread.count} unread notifications`);
}
