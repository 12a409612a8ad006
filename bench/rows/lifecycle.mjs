import { report } from '../../scripts/checkout/progress.mjs';
import { measureDeletions } from '../lib/deletions.mjs';
import { measure } from '../lib/load.mjs';
import { FIRST_TIMESTAMP, ORGANIZATION, seedOurs, usersOf } from '../lib/seed.mjs';
import { measureStatements } from '../lib/statement-costs.mjs';
import { summaryOf, spread, two, whole } from '../lib/statistics.mjs';

export const title = 'read, delete and remove, 1 connection';

/** Calls of one round, each of which changes something. */
const CALLS = 10_000;
const AT_ONCE = 1000;
const LEAVERS = 'leavers';
const MOST_OF_AN_ADD = 1.5;

const ADD = 'notifications/add';
const READ = 'notifications/update';

/**
 * Requests of each operation. No request repeats an earlier one.
 * @type {Record<string, (call: number, stored: number) => object>}
 */
const REQUESTS = {
  [READ]: (call, stored) => ({
    organizationId: ORGANIZATION,
    userId: `user${call % usersOf(stored)}`,
    readUpTo: FIRST_TIMESTAMP + call,
  }),
  'notifications/delete': (call) => ({ organizationId: ORGANIZATION, notificationIds: [`n${call}`] }),
  'users/delete': (call) => ({ organizationId: LEAVERS, userIds: [leaver(call)] }),
};

/** @param {number} call */
const leaver = (call) => `user${call}`;

/** @param {import('../lib/laboratory.mjs').Laboratory} laboratory @param {import('../lib/modes.mjs').Mode} mode */
export async function run(laboratory, mode) {
  const stored = mode.sizes[mode.sizes.length - 1];
  const system = await laboratory.freshSystem('ours');
  await seedOurs(system.sql, stored, { toAll: true });
  return measureAll(laboratory, system, stored, mode);
}

/**
 * @param {import('../lib/laboratory.mjs').Laboratory} laboratory
 * @param {import('../lib/ours.mjs').Ours} system with the notifications of this row
 * @param {number} stored
 * @param {import('../lib/modes.mjs').Mode} mode
 */
async function measureAll(laboratory, system, stored, mode) {
  const { rounds, seconds } = mode;
  for (let first = 0; first < rounds * CALLS; first += AT_ONCE) {
    const users = Array.from({ length: AT_ONCE }, (_, index) => ({ userId: leaver(first + index) }));
    await system.call('users/add', { organizationId: LEAVERS, users });
  }
  const operations = [ADD, ...Object.keys(REQUESTS)];
  /** @type {Record<string, import('../lib/load.mjs').Run[]>} */
  const runs = Object.fromEntries(operations.map((operation) => [operation, []]));
  for (let round = 0; round < rounds; round++) {
    report(`    round ${round + 1} of ${rounds}`);
    for (let turn = 0; turn < operations.length; turn++) {
      const operation = operations[(round + turn) % operations.length];
      const workload = workloadOf(operation, round, stored);
      runs[operation].push(await measure(laboratory, system, { operation, connections: 1, seconds, workload }));
    }
  }
  const operationsFound = findings(runs);
  report('    deletions of documents');
  const deletions = await measureDeletions(laboratory, system, mode);
  report('    statements');
  const statements = await measureStatements(system, stored);
  return {
    verdicts: [...operationsFound.verdicts, ...(deletions.verdicts ?? [])],
    tables: [operationsFound, deletions, statements].flatMap(({ tables = [] }) => tables),
  };
}

/** @param {string} operation @param {number} round @param {number} stored @returns {import('../workloads.mjs').Workload} */
function workloadOf(operation, round, stored) {
  const requestOf = REQUESTS[operation];
  if (!requestOf) return { name: 'addNotification', recipients: 2 };
  return { name: 'requestsOnce', requests: Array.from({ length: CALLS }, (_, call) => requestOf(round * CALLS + call, stored)) };
}

/** @param {Record<string, import('../lib/load.mjs').Run[]>} runs */
function findings(runs) {
  const found = Object.entries(runs).map(([operation, each]) => ({ operation, each, ...summaryOf(each) }));
  const p50Of = (/** @type {string} */ wanted) => found.find(({ operation }) => operation === wanted)?.p50 ?? NaN;
  const ratio = p50Of(READ) / p50Of(ADD);
  return {
    verdicts: [
      {
        what: 'notifications/update with readUpTo, 1 connection: p50 against that of an add',
        target: `under ${MOST_OF_AN_ADD} ×`,
        reached: `${two(ratio)} × (${two(p50Of(READ))} ms to ${two(p50Of(ADD))} ms)`,
        spread: `${spread(runs[READ], ({ p50 }) => p50, two)} ms`,
        met: ratio < MOST_OF_AN_ADD,
      },
    ],
    tables: [
      {
        title: `${title}: p50 in ms, and CPU microseconds for each call`,
        head: ['operation', 'p50', 'against an add', 'CPU without the client'],
        rows: found.map(({ operation, p50, cpu }) => [
          operation,
          two(p50),
          `${two(p50 / p50Of(ADD))} ×`,
          whole(Object.entries(cpu).reduce((sum, [name, used]) => (name === 'client' ? sum : sum + used), 0)),
        ]),
      },
    ],
  };
}
