import { performance } from 'node:perf_hooks';
import { FailedRun, measure } from './load.mjs';
import { ORGANIZATION, storeDocument } from './seed.mjs';
import { median, spread, two, whole } from './statistics.mjs';

const MOST_MS = 1000;
const LEAST_SHARE = 0.8;
/** Deleted one after the other beside adds, until the adds end. */
const DOCUMENTS = 12;
const ADD = 'notifications/add';

/**
 * The deletion of documents with as many recipients, alone and beside adds.
 * @param {import('./laboratory.mjs').Laboratory} laboratory
 * @param {import('./ours.mjs').Ours} system with stored notifications
 * @param {import('./modes.mjs').Mode} mode
 * @returns {Promise<import('./findings.mjs').Findings>}
 */
export async function measureDeletions(laboratory, system, { seconds, deletedRecipients }) {
  const kinds = [1, 1000].map((recipients) => ({ recipients, notifications: deletedRecipients / recipients }));
  const alone = [];
  for (const { recipients, notifications } of kinds) {
    const documentId = `alone ${recipients} `;
    await storeDocument(system.sql, documentId, notifications, recipients);
    await laboratory.admin.query('CHECKPOINT');
    const since = performance.now();
    const calls = await deleteDocument(system, documentId);
    alone.push({ recipients, notifications, calls, seconds: (performance.now() - since) / 1000 });
  }
  const [, { recipients, notifications }] = kinds;
  for (let number = 0; number < DOCUMENTS; number++)
    await storeDocument(system.sql, `beside ${number} `, notifications, recipients);
  const adds = { operation: ADD, connections: 64, seconds, workload: { name: 'addNotification', recipients: 2 } };
  const before = await measure(laboratory, system, adds);
  let stopped = false;
  /** @type {Promise<number[]> | undefined} */
  let deleting;
  const during = await measure(laboratory, system, adds, () => {
    deleting = deleteUntil(system, () => stopped);
    deleting.catch(() => {}); // awaited below, when the adds are over
  }).finally(() => (stopped = true));
  const beside = (await deleting) ?? [];
  const share = during.perSecond / before.perSecond;
  const slowest = alone.reduce((most, one) => (Math.max(...one.calls) > Math.max(...most.calls) ? one : most));
  return {
    verdicts: [
      {
        what: `notifications/delete of a document with ${whole(deletedRecipients)} recipients: each call`,
        target: `under ${whole(MOST_MS)} ms`,
        reached: `${two(Math.max(...slowest.calls))} ms at most (${whole(slowest.recipients)} in a notification)`,
        spread: `${spread(
          alone.flatMap(({ calls }) => calls),
          (ms) => ms,
          two,
        )} ms`,
        met: Math.max(...slowest.calls) < MOST_MS,
      },
      {
        what: 'notifications/add, 64 connections, beside such deletions: rate',
        target: `at least ${LEAST_SHARE} × without`,
        reached: `${two(share)} × (${whole(during.perSecond)}/s to ${whole(before.perSecond)}/s)`,
        spread: `${whole((beside.length * 10_000) / seconds)} recipients deleted a second, ${spread(beside, (ms) => ms, two)} ms a call`,
        met: share >= LEAST_SHARE,
      },
    ],
    tables: [
      {
        title: 'notifications/delete by documentId, 1 connection',
        head: ['notifications', 'recipients of each', 'calls', 'p50 ms', 'slowest ms', 'seconds in all'],
        rows: alone.map(({ notifications, recipients, calls, seconds }) => [
          whole(notifications),
          whole(recipients),
          whole(calls.length),
          two(median(calls)),
          two(Math.max(...calls)),
          two(seconds),
        ]),
      },
    ],
  };
}

/**
 * @param {import('./ours.mjs').Ours} system
 * @param {string} documentId
 * @param {() => boolean} [isOver]
 * @returns {Promise<number[]>} milliseconds of each call
 */
async function deleteDocument(system, documentId, isOver = () => false) {
  const times = [];
  let pageToken;
  do {
    const since = performance.now();
    const { result } = await system.call('notifications/delete', { organizationId: ORGANIZATION, documentId, pageToken });
    times.push(performance.now() - since);
    ({ pageToken } = result);
  } while (pageToken && !isOver());
  return times;
}

/** @param {import('./ours.mjs').Ours} system @param {() => boolean} isOver */
async function deleteUntil(system, isOver) {
  const times = [];
  for (let number = 0; !isOver(); number++) {
    if (number === DOCUMENTS) throw new FailedRun('all documents are deleted before the adds end');
    times.push(...(await deleteDocument(system, `beside ${number} `, isOver)));
  }
  return times;
}
