import { report } from '../../scripts/checkout/progress.mjs';
import { measure } from '../lib/load.mjs';
import { ORGANIZATION, usersOf } from '../lib/seed.mjs';
import { median, spread, two, whole } from '../lib/statistics.mjs';
import { Tables } from '../lib/tables.mjs';

export const title = 'notifications/inbox, over table size';

const MOST_GROWTH = 1.3;
const PAGE = 50;
const REQUESTS = 200;

/** Parts of a request, by name. */
const KINDS = {
  'page with count': { pageSize: PAGE },
  'unread ones with count': { pageSize: PAGE, unread: true },
  'count alone': { pageSize: 0 },
};

/** @typedef {{ name: string, fields: object, runs: import('../lib/load.mjs').Run[][] }} Found */

/**
 * One user has a tenth of all notifications, and half of those of its document are to all. The others have as many in each table.
 * @param {import('../lib/laboratory.mjs').Laboratory} laboratory
 * @param {import('../lib/modes.mjs').Mode} mode
 */
export async function run(laboratory, { rounds, pageSeconds, sizes }) {
  const system = await laboratory.freshSystem('ours');
  const tables = new Tables(system);
  for (const size of sizes) await tables.store(size);
  /** @type {Found[]} */
  const found = Object.entries(KINDS).map(([name, fields]) => ({ name, fields, runs: sizes.map(() => []) }));
  const base = { operation: 'notifications/inbox', connections: 1, warmUpSeconds: pageSeconds / 2, seconds: pageSeconds };
  for (let round = 0; round < rounds; round++) {
    report(`    round ${round + 1} of ${rounds}`);
    for (const { fields, runs } of found)
      for (let turn = 0; turn < sizes.length; turn++) {
        const index = (round + turn) % sizes.length;
        await tables.use(sizes[index]);
        const requests = requestsOf(fields, sizes[index]);
        if (round === 0) await expectUnread(system, requests[0]);
        runs[index].push(await measure(laboratory, system, { ...base, workload: { name: 'requests', requests } }));
      }
  }
  return findings(found, sizes);
}

/**
 * In turn of the busy user and of the others.
 * @param {object} fields
 * @param {number} size
 */
const requestsOf = (fields, size) =>
  Array.from({ length: REQUESTS }, (_, index) => ({
    organizationId: ORGANIZATION,
    userId: index % 2 === 0 ? 'busy' : `user${(index * 37) % usersOf(size)}`,
    ...fields,
  }));

/**
 * A count of nothing would be cheap.
 * @param {import('../lib/ours.mjs').Ours} system
 * @param {object} request
 */
async function expectUnread(system, request) {
  const { result } = await system.call('notifications/inbox', request);
  if (result.unread.count === 0) throw new Error('the inbox has no unread notifications');
}

/** @param {Found[]} found @param {number[]} sizes */
function findings(found, sizes) {
  const judged = found.map(({ name, runs }) => {
    const medians = runs.map((each) => median(each.map(({ p50 }) => p50)));
    return { name, medians, growth: Math.max(...medians) / Math.min(...medians) };
  });
  const worst = judged.reduce((most, one) => (one.growth > most.growth ? one : most));
  return {
    verdicts: [
      {
        what: `${title}: p50 at ${sizes.map(whole).join(', ')} stored`,
        target: `within ${MOST_GROWTH} × from smallest to largest`,
        reached: `${two(worst.growth)} × at worst (${worst.name})`,
        spread: `${spread(judged, ({ growth }) => growth, two)} ×`,
        met: worst.growth <= MOST_GROWTH,
      },
    ],
    tables: [
      {
        title: 'notifications/inbox, 1 connection: p50 in ms by stored notifications',
        head: ['request', ...sizes.map(whole), 'growth'],
        rows: judged.map(({ name, medians, growth }) => [name, ...medians.map(two), `${two(growth)} ×`]),
      },
    ],
  };
}
