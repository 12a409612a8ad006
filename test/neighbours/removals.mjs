// Users whom the good tenant adds and removes, one a second: how long each of them still finds a notification to all. A part of good-tenant.mjs.

import { pause } from './attacks/calls.mjs';

/** @typedef {{ status: number, text?: string }} Response */
/** @typedef {{ number: number, askedAt: number, status: number, found: boolean, seenMs: number, noiseMs: number }} Removal */

const EVERY_MS = 1000;
const READ_EVERY_MS = 50;
/** Reads of many late removals must not become a load themselves. */
const PAUSE_OF_TIME = 0.2;
/** Longer than the promised second, so that the figure is known. */
const GIVE_UP_MS = 20_000;

/**
 * Adds a user, reads as the user, removes the user, and reads until nothing is found.
 * @param {object} options
 * @param {(operation: string, data: object) => Promise<Response>} options.call
 * @param {{ between(from: number, until: number): number }} options.machine
 * @param {string} options.organizationId has a notification to all
 * @param {(removal: Removal) => void} options.report
 * @returns ends it, and resolves when every removal was seen
 */
export function removeUsers({ call, machine, organizationId, report }) {
  const open = new Set();
  let number = 0;
  const timer = setInterval(() => {
    const removal = removeOne(number++).then(report);
    open.add(removal);
    void removal.finally(() => open.delete(removal));
  }, EVERY_MS);
  return async () => {
    clearInterval(timer);
    await Promise.all(open);
  };

  /** @param {number} number @returns {Promise<Removal>} */
  async function removeOne(number) {
    const userId = `leaver ${number}`;
    const askedAt = Date.now();
    /** @param {number} status */
    const failed = (status) => ({ number, askedAt, status, found: true, seenMs: 0, noiseMs: 0 });
    const added = await call('users/add', { organizationId, users: [{ userId }] });
    if (added.status !== 200) return failed(added.status);
    // From here on the copy knows this user, so that only the event can end the membership.
    const before = await call('notifications/get', { organizationId, userId, pageSize: 1 });
    if (before.status !== 200) return failed(before.status);
    const removed = await call('users/delete', { organizationId, userIds: [userId] });
    if (removed.status !== 200) return failed(removed.status);
    const since = performance.now();
    for (;;) {
      const from = performance.now();
      const { status, text } = await call('notifications/get', { organizationId, userId, pageSize: 1 });
      if (status !== 200) return failed(status);
      if (isEmpty(text) || from - since > GIVE_UP_MS)
        return {
          number,
          askedAt,
          status,
          found: !isEmpty(before.text),
          seenMs: from - since,
          noiseMs: machine.between(since, from),
        };
      await pause(Math.max(READ_EVERY_MS, PAUSE_OF_TIME * (from - since)));
    }
  }
}

/** @param {string | undefined} text */
const isEmpty = (text = '') => JSON.parse(text).result.data.length === 0;
