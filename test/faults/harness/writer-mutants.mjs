// Mutants of what calls share in the writers of notifications and of users.
const QUEUE = 'apps/notifications/src/writer/write-queue.ts';
const TESTS = 'apps/notifications/src/writer/write-queue.spec.ts';
const MEMBERS = 'apps/users/src/commands/add-users/members-writer.ts';
const MEMBERS_TESTS = 'apps/users/src/commands/add-users/members-writer.int-spec.ts';

/** @type {import('./mutants.mjs').Mutant[]} */
export const WRITER_MUTANTS = [
  {
    name: 'keys without turns in a statement of adds',
    edits: [[QUEUE, 'inTurns(this.waiting)', 'this.waiting']],
    test: [TESTS, 'so that many recipients of one do not delay another'],
  },
  {
    name: 'statements of light adds with thousands of recipients beside others',
    edits: [[QUEUE, 'MAX_RECIPIENTS_BESIDE = 500', 'MAX_RECIPIENTS_BESIDE = 10_000']],
    test: [TESTS, 'bounds the recipients of large ones beside small ones'],
  },
  {
    name: 'calls for one user in several statements at once',
    edits: [[MEMBERS, ' || userIds.some((userId) => kept.has(userId))', '']],
    test: [MEMBERS_TESTS, 'when it comes while another one waits, and names other users'],
  },
  {
    name: 'a user who is locked, in the way of the others of a statement',
    edits: [[MEMBERS, 'await this.writeEach(left);', "for (const { resolve } of left) resolve({ outcome: 'missed' });"]],
    test: [MEMBERS_TESTS, 'when its statement waits for the user of another one'],
  },
];
