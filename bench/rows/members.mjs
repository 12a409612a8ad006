import { performance } from 'node:perf_hooks';
import { FailedRun } from '../lib/load.mjs';
import { two, whole } from '../lib/statistics.mjs';

export const title = 'notifyAll to an organization of 100,000';

const MEMBERS = 100_000;
const AT_ONCE = 1000;
const READERS = 300;
const CHANGES = 200;
const MOST_MS = 20;
const TYPICAL_LAG_MS = 50;
const MOST_LAG_MS = 1000;
const ORGANIZATION = 'members';

/** @param {import('../lib/laboratory.mjs').Laboratory} laboratory */
export async function run(laboratory) {
  const system = await laboratory.freshSystem('ours');
  for (let first = 0; first < MEMBERS; first += AT_ONCE) {
    const users = Array.from({ length: AT_ONCE }, (_, index) => ({ userId: `member${first + index}` }));
    await system.call('users/add', { organizationId: ORGANIZATION, users });
  }
  await system.call('notifications/add', toAll('hello', 'open'));
  const { rows } = await system.sql.query(
    'SELECT (SELECT count(*) FROM notifications.notifications WHERE notify_all)::int + (SELECT count(*) FROM notifications.recipients WHERE notification_id = $1)::int AS written',
    ['hello'],
  );
  const readers = Array.from({ length: READERS }, (_, number) => `member${number * Math.floor(MEMBERS / READERS)}`);
  const first = await timesOf(readers, (userId) => requireSeen(system, userId, 'hello'));
  const again = await timesOf(readers, (userId) => requireSeen(system, userId, 'hello'));
  const inboxes = await timesOf(readers, (userId) => requireUnread(system, userId));
  const lags = await measureLags(system);
  return {
    verdicts: [
      verdict('rows written for it', 'one', whole(rows[0].written), '', rows[0].written === 1),
      below('get by a member, first time', first, MOST_MS),
      below('get by a member, again', again, MOST_MS),
      below('inbox of a member', inboxes, MOST_MS),
      below('from the answer of users/add until get shows it to a known user, typically', lags, TYPICAL_LAG_MS),
      below('the same, at most', lags, MOST_LAG_MS, 1),
    ],
  };
}

/** @param {string} notificationId @param {string} documentId */
const toAll = (notificationId, documentId) => ({
  organizationId: ORGANIZATION,
  documentId,
  notificationId,
  actionUser: { userId: 'member0' },
  displayHeadlineMessageTemplate: 'Hello',
  notifyAll: true,
});

/**
 * @template T
 * @param {T[]} values
 * @param {(value: T) => Promise<void>} work
 * @returns {Promise<number[]>} milliseconds, the shortest first
 */
async function timesOf(values, work) {
  const times = [];
  for (const value of values) {
    const from = performance.now();
    await work(value);
    times.push(performance.now() - from);
  }
  return times.sort((a, b) => a - b);
}

/** @param {import('../lib/ours.mjs').Ours} system @param {string} userId @param {string} notificationId */
async function sees(system, userId, notificationId) {
  const { result } = await system.call('notifications/get', { organizationId: ORGANIZATION, userId });
  return result.data.some((/** @type {{ id: string }} */ notification) => notification.id === notificationId);
}

/** @param {import('../lib/ours.mjs').Ours} system @param {string} userId @param {string} notificationId */
async function requireSeen(system, userId, notificationId) {
  if (!(await sees(system, userId, notificationId))) throw new FailedRun(`${userId} does not get ${notificationId}`);
}

/** @param {import('../lib/ours.mjs').Ours} system @param {string} userId */
async function requireUnread(system, userId) {
  const { result } = await system.call('notifications/inbox', { organizationId: ORGANIZATION, userId });
  if (result.unread.count !== 1) throw new FailedRun(`${userId} has ${result.unread.count} unread notifications`);
}

/**
 * Of users whom notifications knows already: whom it does not know it asks for, and has no lag.
 * @param {import('../lib/ours.mjs').Ours} system
 */
async function measureLags(system) {
  const stranger = 'guest';
  await system.call('users/add', { organizationId: ORGANIZATION, documentId: 'none', users: [{ userId: stranger }] });
  await sees(system, stranger, 'hello');
  const numbers = Array.from({ length: CHANGES }, (_, number) => number);
  for (const number of numbers) await system.call('notifications/add', toAll(`n${number}`, `document${number}`));
  return timesOf(numbers, async (number) => {
    const added = { organizationId: ORGANIZATION, documentId: `document${number}`, users: [{ userId: stranger }] };
    await system.call('users/add', added);
    const deadline = performance.now() + 10_000;
    while (!(await sees(system, stranger, `n${number}`)))
      if (performance.now() > deadline) throw new FailedRun(`n${number} does not become visible`);
  });
}

/** @param {string} what @param {string} target @param {string} reached @param {string} spread @param {boolean} met */
const verdict = (what, target, reached, spread, met) => ({ what: `${title}: ${what}`, target, reached, spread, met });

/** @param {string} what @param {number[]} times @param {number} most */
function below(what, times, most, share = 0.5) {
  /** @param {number} part */
  const at = (part) => times[Math.min(times.length - 1, Math.floor(times.length * part))];
  const reached = at(share);
  return verdict(what, `under ${most} ms`, `${two(reached)} ms`, `${two(times[0])}–${two(at(1))} ms`, reached < most);
}
