import { report } from '../../scripts/checkout/progress.mjs';
import { measure } from '../lib/load.mjs';
import { planOf } from '../lib/plans.mjs';
import { ORGANIZATION, filtersOf, usersOf } from '../lib/seed.mjs';
import { median, spread, two, whole } from '../lib/statistics.mjs';
import { Tables } from '../lib/tables.mjs';

export const title = 'notifications/get by every combination of filters, over table size';

const MOST_GROWTH = 1.3;
const PAGE = 50;
/** @typedef {import('../lib/plans.mjs').PageRequest} PageRequest */
/** @typedef {Awaited<ReturnType<typeof planOf>> & { size: number }} Plan */
/** @typedef {{ name: string, filters: Filter[], runs: import('../lib/load.mjs').Run[][], plans: Plan[] }} Found */
/** @typedef {'documentId' | 'locationId' | 'userId' | 'notificationIds'} Filter */

/** @type {Filter[][]} */
const COMBINATIONS = [
  ['documentId'],
  ['documentId', 'notificationIds'],
  ['documentId', 'locationId'],
  ['documentId', 'locationId', 'notificationIds'],
  ['userId'],
  ['userId', 'notificationIds'],
  ['documentId', 'userId'],
  ['locationId', 'userId'],
  ['documentId', 'locationId', 'userId'],
];

/** @param {import('../lib/laboratory.mjs').Laboratory} laboratory @param {import('../lib/modes.mjs').Mode} mode */
export async function run(laboratory, { rounds, pageSeconds, sizes }) {
  const system = await laboratory.freshSystem('ours');
  const tables = new Tables(system);
  for (const size of sizes) await tables.store(size);
  /** @type {Found[]} */
  const found = COMBINATIONS.map((filters) => ({ name: filters.join(' + '), filters, runs: sizes.map(() => []), plans: [] }));
  const base = { operation: 'notifications/get', connections: 1, warmUpSeconds: pageSeconds / 2, seconds: pageSeconds };
  for (let round = 0; round < rounds; round++) {
    report(`    round ${round + 1} of ${rounds}`);
    for (const one of found)
      for (let turn = 0; turn < sizes.length; turn++) {
        const index = (round + turn) % sizes.length;
        const size = sizes[index];
        await tables.use(size);
        const requests = requestsOf(one.filters, size);
        if (round === 0) one.plans.push(...(await plansOf(system, size, requests)));
        one.runs[index].push(await measure(laboratory, system, { ...base, workload: { name: 'requests', requests } }));
      }
  }
  return findings(found, sizes);
}

/**
 * Of the busy one and of another.
 * @param {import('../lib/ours.mjs').Ours} system
 * @param {number} size
 * @param {PageRequest[]} requests
 */
async function plansOf(system, size, requests) {
  const plans = [];
  for (const request of requests.slice(0, 2)) {
    const { result } = await system.call('notifications/get', request);
    if (result.data.length !== PAGE) throw new Error(`a page has ${result.data.length} of ${PAGE} notifications`);
    plans.push({ size, ...(await planOf(system.sql, request)) });
  }
  return plans;
}

/**
 * In turn of the busy one, and of users that have as many notifications in every table.
 * @param {Filter[]} filters
 * @param {number} size
 */
function requestsOf(filters, size) {
  return Array.from({ length: 200 }, (_, index) => {
    const every = filtersOf(size, index % 2 === 0 ? 'busy' : (index * 37) % usersOf(size), PAGE);
    return {
      organizationId: ORGANIZATION,
      pageSize: PAGE,
      ...Object.fromEntries(filters.map((filter) => [filter, every[filter]])),
    };
  });
}

/** @param {import('../lib/load.mjs').Run[]} runs */
const p50 = (runs) => median(runs.map((run) => run.p50));

/** @param {Found[]} found @param {number[]} sizes */
function findings(found, sizes) {
  const judged = found.map((one) => {
    const medians = one.runs.map(p50);
    const problems = [
      ...new Set(one.plans.flatMap(({ size, problems: own }) => own.map((problem) => `${problem} at ${whole(size)}`))),
    ];
    return { ...one, medians, growth: Math.max(...medians) / Math.min(...medians), problems };
  });
  const worst = judged.reduce((most, one) => (one.growth > most.growth ? one : most));
  const wrong = judged.filter(({ problems }) => problems.length > 0);
  return {
    verdicts: [
      {
        what: `${title}: p50 at ${sizes.map(whole).join(', ')} stored`,
        target: `within ${MOST_GROWTH} × from smallest to largest, each combination`,
        reached: `${two(worst.growth)} × at worst (${worst.name})`,
        spread: `${spread(judged, ({ growth }) => growth, two)} ×`,
        met: worst.growth <= MOST_GROWTH,
      },
      {
        what: 'their plans',
        target: 'an index for each, nothing read or sorted beyond a few pages',
        reached: wrong.map(({ name, problems }) => `${name}: ${problems.join(', ')}`).join('; ') || 'all',
        spread: '',
        met: wrong.length === 0,
      },
    ],
    tables: [
      {
        title: 'notifications/get, pages of 50, 1 connection: p50 in ms by stored notifications',
        head: ['filters', ...sizes.map(whole), 'growth', 'most rows in a node', 'indexes'],
        rows: judged.map(({ name, medians, growth, plans }) => [
          name,
          ...medians.map(two),
          `${two(growth)} ×`,
          String(Math.max(...plans.map(({ rows }) => rows))),
          [...new Set(plans.flatMap(({ indexes }) => indexes))].join(', '),
        ]),
      },
    ],
    plots: [
      {
        file: 'pages.svg',
        title: 'notifications/get, pages of 50: p50 by filters',
        x: { label: 'stored notifications', logarithmic: true },
        y: { label: 'milliseconds' },
        series: judged.map(({ name, medians }) => ({ name, points: sizes.map((size, index) => [size, medians[index]]) })),
      },
    ],
  };
}
