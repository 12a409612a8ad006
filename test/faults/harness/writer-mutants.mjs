// Mutants of what API keys share in the writer of notifications.
const QUEUE = 'apps/notifications/src/writer/write-queue.ts';
const TESTS = 'apps/notifications/src/writer/write-queue.spec.ts';

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
];
