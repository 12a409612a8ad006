// Tenants that read, mark, delete and erase as fast as they may. Each one stores first what makes its calls expensive.
import { Calls, bodyOf, notification, pause, storeHeavyPages, unique } from './calls.mjs';

export const ORGANIZATION = 'the attacker';
/** Most recipients of a notification, most users of users/add, and most pairs of notifications/update. */
export const MOST = 1000;
/** Most userIds of one erasure. */
const PEOPLE = 100;

const STORED_AT_ONCE = 8;
const GIVE_UP_MS = 120_000;
const AGAIN_MS = 250;

/** @param {number} count @param {string} prefix @param {number} [first] */
export const usersOf = (count, prefix, first = 0) =>
  Array.from({ length: count }, (_, number) => ({ userId: `${prefix} ${first + number}` }));

/** @template T @param {number} count @param {(number: number) => T} make */
export const times = (count, make) => Array.from({ length: count }, (_, number) => make(number));

/** @param {string} documentId @param {object[]} notifyUsers @param {object} [more] @returns {[string, object]} */
const add = (documentId, notifyUsers, more) => ['notifications/add', notification({ documentId, notifyUsers, ...more })];

/** @param {string} userId @param {string[]} ids @returns {[string, object]} */
const markRead = (userId, ids) => [
  'notifications/update',
  { organizationId: ORGANIZATION, notifications: ids.map((id) => ({ id, readByUserIds: [userId] })) },
];

/**
 * Makes calls until each has been answered 200.
 * @param {import('./all.mjs').Target} target
 * @param {[operation: string, data: object][]} all
 */
export async function store(target, all) {
  const calls = new Calls(target);
  const until = performance.now() + GIVE_UP_MS;
  const left = all.values();
  const next = async () => {
    for (const [operation, data] of left) {
      for (let status = 0; status !== 200;) {
        status = Number(await calls.call(operation, target.tenant, bodyOf(data)));
        if (status !== 200 && performance.now() > until) throw new Error(`${operation} was answered ${status}`);
        if (status !== 200) await pause(AGAIN_MS);
      }
    }
  };
  await Promise.all(times(STORED_AT_ONCE, next));
  calls.stop();
}

/** The user whose inbox is read, with a document of 4 MiB and as many notifications as a count looks through. */
const READER = 'a reader';
const INBOX = { organizationId: ORGANIZATION, documentId: 'inbox' };
const NAMED = 2000;
const TO_ALL = 5000;

const MARKING = times(200, (number) => `marking ${number}`);

/** Documents with 100,000 recipients. */
const DOCUMENTS = 10;
const NOTIFICATIONS_OF_A_DOCUMENT = 100;

/** Groups of people for one erasure each; later erasures are of unknown people. */
const GROUPS = 20;
const DOCUMENTS_OF_A_PERSON = 100;
const NOTIFICATIONS_OF_A_PERSON = 50;

/** @type {import('./all.mjs').Attack[]} */
export const LIFECYCLE = [
  {
    name: 'inboxes at full speed',
    seconds: 10,
    why: 'A count looks through 7,000 notifications that the user has read one by one, and a page has 4 MiB.',
    async prepare(target) {
      const run = unique();
      const ids = times(NAMED + TO_ALL, (number) => `${run} ${number}`);
      await storeHeavyPages(target, { ...INBOX, notifyUsers: [{ userId: READER }] });
      await store(target, [['users/add', { organizationId: ORGANIZATION, users: [{ userId: READER }] }]]);
      // The mark is older than all that follow.
      await store(target, [['notifications/update', { organizationId: ORGANIZATION, userId: READER, readUpTo: Date.now() }]]);
      await store(
        target,
        ids.map((notificationId, number) =>
          add('counted', number < NAMED ? [{ userId: READER }] : [], { notificationId, notifyAll: number >= NAMED }),
        ),
      );
      const pages = times(ids.length / MOST, (page) => ids.slice(page * MOST, (page + 1) * MOST));
      await store(
        target,
        pages.map((page) => markRead(READER, page)),
      );
    },
    start(target) {
      let number = 0;
      const page = bodyOf({ ...INBOX, userId: READER, pageSize: 256 });
      const counted = bodyOf({ organizationId: ORGANIZATION, userId: READER, pageSize: 50, unread: true });
      return new Calls(target).closedLoop(64, () => ['notifications/inbox', target.tenant, number++ % 2 ? page : counted]);
    },
  },
  {
    name: 'all marked as read at full speed',
    seconds: 10,
    why: 'Each call looks for the oldest transaction, writes a mark and an event, and deletes a thousand marks of single notifications.',
    async prepare(target) {
      const run = unique();
      const ids = times(MOST, (number) => `${run} ${number}`);
      await store(
        target,
        ids.map((notificationId) => add('marked', [], { notificationId })),
      );
      await store(
        target,
        MARKING.map((userId) => markRead(userId, ids)),
      );
    },
    start(target) {
      let number = 0;
      return new Calls(target).closedLoop(64, () => [
        'notifications/update',
        target.tenant,
        bodyOf({ organizationId: ORGANIZATION, userId: MARKING[number++ % MARKING.length], readUpTo: Date.now() }),
      ]);
    },
  },
  {
    name: 'deletions of 100,000 recipients at full speed',
    seconds: 10,
    why: 'One call deletes up to 10,000 rows of recipients. A third of the calls add 1,000 again.',
    prepare: (target) =>
      store(
        target,
        times(DOCUMENTS * NOTIFICATIONS_OF_A_DOCUMENT, (number) => add(`full ${number % DOCUMENTS}`, usersOf(MOST, 'user'))),
      ),
    start(target) {
      let number = 0;
      const adds = times(DOCUMENTS, (document) => bodyOf(add(`full ${document}`, usersOf(MOST, 'user'))[1]));
      const deletions = times(DOCUMENTS, (document) => bodyOf({ organizationId: ORGANIZATION, documentId: `full ${document}` }));
      return new Calls(target).closedLoop(32, () => {
        const document = Math.floor(number / 3) % DOCUMENTS;
        return number++ % 3 === 0
          ? ['notifications/add', target.tenant, adds[document]]
          : ['notifications/delete', target.tenant, deletions[document]];
      });
    },
  },
  {
    name: 'erasures of a hundred people at full speed',
    seconds: 10,
    why: 'Each person is a member of 100 documents and is named in 50 notifications, and each erasure looks through all notifications.',
    async prepare(target) {
      const thousands = (GROUPS * PEOPLE) / MOST;
      await store(
        target,
        times(thousands * DOCUMENTS_OF_A_PERSON, (number) => {
          const documentId = `of people ${Math.floor(number / thousands)}`;
          const users = usersOf(MOST, 'erased', (number % thousands) * MOST);
          return /** @type {[string, object]} */ (['users/add', { organizationId: ORGANIZATION, documentId, users }]);
        }),
      );
      await store(
        target,
        times(thousands * NOTIFICATIONS_OF_A_PERSON, (number) =>
          add('of people', usersOf(MOST, 'erased', (number % thousands) * MOST)),
        ),
      );
    },
    start(target) {
      let group = 0;
      const people = () => usersOf(PEOPLE, 'erased', PEOPLE * group++).map(({ userId }) => userId);
      return new Calls(target).closedLoop(8, () => ['users/data/delete', target.tenant, bodyOf({ userIds: people() })]);
    },
  },
];
