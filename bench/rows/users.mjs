import { cpuTable } from '../lib/findings.mjs';
import { interleaved } from '../lib/rounds.mjs';
import { spread, whole } from '../lib/statistics.mjs';

export const title = 'users/add, 100 and 1 new users, 16 connections';

const USERS = 100;
const LEAST = 35_000;
const STRETCH = 45_000;

/** @param {number} users */
const titleOf = (users) => `users/add, ${users} new ${users === 1 ? 'user' : 'users'}, 16 connections`;

/** @param {import('../lib/laboratory.mjs').Laboratory} laboratory @param {import('../lib/modes.mjs').Mode} mode */
export async function run(laboratory, { rounds, seconds }) {
  /** @param {number} users */
  const measured = (users) =>
    interleaved(laboratory, ['ours'], rounds, (_name, round) => ({
      operation: 'users/add',
      // Of each round's own, so that every user is new.
      workload: { name: 'addUsers', users, seed: `${users}round${round}` },
      connections: 16,
      seconds,
    }));
  const found = await measured(USERS);
  const one = await measured(1);
  /** @param {{ perSecond: number }} run */
  const users = (run) => run.perSecond * USERS;
  return {
    verdicts: [
      {
        what: titleOf(USERS),
        target: `at least ${whole(LEAST)} users a second, stretch ${whole(STRETCH)}`,
        reached: `${whole(users(found.ours))}/s`,
        spread: spread(found.ours.runs, users),
        met: users(found.ours) >= LEAST,
      },
    ],
    tables: [cpuTable(titleOf(USERS), found), cpuTable(titleOf(1), one)],
  };
}
