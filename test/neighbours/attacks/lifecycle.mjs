// Tenants that read, mark, delete and erase as fast as they may.
import { Calls, HEAVY, bodyOf, notification, prepareHeavyPages, storeHeavyPages } from './calls.mjs';

const RECIPIENTS = 1000;
const DOCUMENT = { organizationId: 'the attacker', documentId: 'to be deleted' };
const recipients = Array.from({ length: RECIPIENTS }, (_, number) => ({ userId: `user ${number}` }));
/** One call in this number deletes what the others have added. */
const EVERY = 20;
/** Most userIds of one erasure. */
const PEOPLE = 100;

/** The user whose inbox is read. It has its own notifications, because those of the heavy pages are for no user. */
const READER = 'a reader';
const INBOX = { organizationId: 'the attacker', documentId: 'inbox' };

const anyUser = () => `user ${Math.floor(Math.random() * RECIPIENTS)}`;

/** @type {import('./all.mjs').Attack[]} */
export const LIFECYCLE = [
  {
    name: 'inboxes at full speed',
    seconds: 10,
    why: 'A page with its read state and its count looks at more rows than a page of notifications/get.',
    prepare: (target) => storeHeavyPages(target, { ...INBOX, notifyUsers: [{ userId: READER }] }),
    start: (target) =>
      new Calls(target).closedLoop(64, () => [
        'notifications/inbox',
        target.tenant,
        bodyOf({ ...INBOX, userId: READER, pageSize: 256 }),
      ]),
  },
  {
    name: 'all marked as read at full speed',
    seconds: 10,
    why: 'Each call looks for the oldest transaction, and writes a mark and an event.',
    prepare: prepareHeavyPages,
    start: (target) =>
      new Calls(target).closedLoop(64, () => [
        'notifications/update',
        target.tenant,
        bodyOf({ organizationId: HEAVY.organizationId, userId: anyUser(), readUpTo: Date.now() }),
      ]),
  },
  {
    name: 'deletions of 1,000 recipients at full speed',
    seconds: 10,
    why: 'One call deletes up to 10,000 rows of recipients, and adding them again costs as much.',
    start(target) {
      let number = 0;
      const added = bodyOf(notification({ ...DOCUMENT, notifyUsers: recipients }));
      return new Calls(target).closedLoop(32, () =>
        number++ % EVERY === 0
          ? ['notifications/delete', target.tenant, bodyOf(DOCUMENT)]
          : ['notifications/add', target.tenant, added],
      );
    },
  },
  {
    name: 'erasures of a hundred people at full speed',
    seconds: 10,
    why: 'Each erasure looks through all notifications of the tenant.',
    prepare: prepareHeavyPages,
    start(target) {
      let number = 0;
      const people = () => Array.from({ length: PEOPLE }, () => `erased ${number++}`);
      return new Calls(target).closedLoop(8, () => ['users/data/delete', target.tenant, bodyOf({ userIds: people() })]);
    },
  },
];
