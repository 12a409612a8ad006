import { cpuTable } from '../lib/findings.mjs';
import { interleaved } from '../lib/rounds.mjs';
import { spread, whole } from '../lib/statistics.mjs';

export const title = 'users/add, 100 new users, 16 connections';

const USERS = 100;
const LEAST = 35_000;
const STRETCH = 45_000;

/** @param {import('../lib/laboratory.mjs').Laboratory} laboratory @param {import('../lib/modes.mjs').Mode} mode */
export async function run(laboratory, { rounds, seconds }) {
  // Of each round's own, so that every user is new.
  /** @param {number} round */
  const workload = (round) => ({ name: 'addUsers', users: USERS, seed: `round${round}` });
  /** @param {string} _name @param {number} round */
  const loadOf = (_name, round) => ({ operation: 'users/add', workload: workload(round), connections: 16, seconds });
  const found = await interleaved(laboratory, ['ours'], rounds, loadOf);
  /** @param {{ perSecond: number }} run */
  const users = (run) => run.perSecond * USERS;
  return {
    verdicts: [
      {
        what: title,
        target: `at least ${whole(LEAST)} users a second, stretch ${whole(STRETCH)}`,
        reached: `${whole(users(found.ours))}/s`,
        spread: spread(found.ours.runs, users),
        met: users(found.ours) >= LEAST,
      },
    ],
    tables: [cpuTable(title, found)],
  };
}
