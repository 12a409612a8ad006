// Tenants whose reads look at many rows, and answer with none of them. Each one stores the rows first.
import { AFTER_REFUSAL_MS, Calls, HEAVY, bodyOf, notification, pause, prepareHeavyPages } from './calls.mjs';
import { MOST, ORGANIZATION, store, times, usersOf } from './lifecycle.mjs';

/** Most members that a page of users looks at. */
const MEMBERS = 10_000;
/** Queries of one key that a gateway publishes at a time. */
const QUERIES_OF_KEY = 192;

/** Added to this number of documents. */
const DOCUMENTS = 10_000;
const READER = 'a reader of documents';

/** So many that both writers answer enough of them. */
const EMPTY = 60;
const PAGES = 32;

/** @type {import('./all.mjs').Attack[]} */
export const READERS = [
  {
    name: 'pages of users who have left',
    seconds: 10,
    why: 'A page looks at 10,000 members and has none of them, and the users service also checks credentials.',
    async prepare(target) {
      const where = { organizationId: ORGANIZATION, documentId: 'of users who have left' };
      const pages = times(MEMBERS / MOST, (page) => usersOf(MOST, 'left', page * MOST));
      await store(
        target,
        pages.map((users) => ['users/add', { ...where, users }]),
      );
      await store(
        target,
        pages.map((users) => ['users/delete', { ...where, userIds: users.map(({ userId }) => userId) }]),
      );
    },
    start(target) {
      const body = bodyOf({ organizationId: ORGANIZATION, documentId: 'of users who have left' });
      return new Calls(target).closedLoop(QUERIES_OF_KEY, () => ['users/get', target.tenant, body]);
    },
  },
  {
    name: 'a reader of 10,000 documents',
    seconds: 10,
    why: 'A page and an inbox look into each document that the user sees, and are empty.',
    async prepare(target) {
      const where = { organizationId: 'many documents' };
      await store(target, [['notifications/add', notification({ ...where, documentId: 'of nobody', notifyAll: true })]]);
      await store(
        target,
        times(DOCUMENTS, (number) => ['users/add', { ...where, documentId: `${number}`, users: [{ userId: READER }] }]),
      );
    },
    start(target) {
      let number = 0;
      const body = bodyOf({ organizationId: 'many documents', userId: READER });
      return new Calls(target).closedLoop(64, () => [
        number++ % 2 ? 'notifications/get' : 'notifications/inbox',
        target.tenant,
        body,
      ]);
    },
  },
  {
    name: 'heavy and empty pages in turn',
    seconds: 10,
    why: 'A tenant that has answered nothing for a while could have its next pages of 4 MiB in all places.',
    prepare: prepareHeavyPages,
    start(target) {
      const calls = new Calls(target);
      let stopped = false;
      /** @param {number} count @param {object} data */
      const atOnce = (count, data) =>
        Promise.all(times(count, () => calls.call('notifications/get', target.tenant, bodyOf(data))));
      const again = async () => {
        while (!stopped) {
          await atOnce(EMPTY, { organizationId: ORGANIZATION, documentId: 'empty' });
          const statuses = await atOnce(PAGES, { ...HEAVY, pageSize: 1000 });
          if (statuses.some((status) => status !== 200)) await pause(AFTER_REFUSAL_MS);
        }
      };
      void again();
      return {
        stop() {
          stopped = true;
          return calls.stop();
        },
      };
    },
  },
];
