// Tenants whose adds are light, and make the statements slow that they share with the adds of others.
import { AFTER_REFUSAL_MS, Calls, bodyOf, notification, pause, unique } from './calls.mjs';
import { times } from './lifecycle.mjs';

/** Half of the places that one key alone gets of a kind. */
const AT_ONCE = 240;
/** Time between the two calls of a pair, so that they are in two messages, and both of them are in flight. */
const APART_MS = 3;
const TOO_MANY = 429;

/** @param {number} count @returns users with ids so short that a hundred of them are a light body */
const shortUsers = (count) => times(count, (number) => ({ userId: number.toString(36).padStart(2, '0') }));

/**
 * Keeps this number of pairs of calls in flight, the second call of each a moment after the first.
 * @param {import('../neighbour-system.ts').Target} target
 * @param {number} pairs
 * @param {() => [import('./calls.mjs').Call, import('./calls.mjs').Call]} next
 */
function inPairs(target, pairs, next) {
  const calls = new Calls(target);
  let stopped = false;
  const again = async () => {
    while (!stopped) {
      const [first, second] = next();
      const statuses = await Promise.all([calls.call(...first), pause(APART_MS).then(() => calls.call(...second))]);
      if (statuses.includes(TOO_MANY)) await pause(AFTER_REFUSAL_MS);
    }
  };
  for (let pair = 0; pair < pairs; pair++) void again();
  return {
    stop() {
      stopped = true;
      return calls.stop();
    },
  };
}

/** @type {import('./all.mjs').Attack[]} */
export const WRITES = [
  {
    name: 'light adds with 99 recipients',
    seconds: 10,
    why: 'A body below 2 KiB is light for the turns, and its recipients are rows of a statement that it shares with small adds of others.',
    start(target) {
      const body = bodyOf(notification({ notifyUsers: shortUsers(99) }));
      return new Calls(target).closedLoop(AT_ONCE, () => ['notifications/add', target.tenant, body]);
    },
  },
  {
    name: 'small adds with the ids of larger ones',
    seconds: 10,
    why: 'A statement waits for another one that stores the same id, and everything waits that shares it.',
    start(target) {
      const users = shortUsers(110);
      return inPairs(target, 64, () => {
        const notificationId = unique();
        return [
          ['notifications/add', target.tenant, bodyOf(notification({ notificationId, notifyUsers: users }))],
          ['notifications/add', target.tenant, bodyOf(notification({ notificationId }))],
        ];
      });
    },
  },
];
