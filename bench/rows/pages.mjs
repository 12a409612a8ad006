import { report } from '../../scripts/lib/progress.mjs';
import { measure } from '../lib/load.mjs';
import { planOf } from '../lib/plans.mjs';
import { ORGANIZATION, filtersOf, seedOurs, usersOf } from '../lib/seed.mjs';
import { median, spread, two, whole } from '../lib/statistics.mjs';

export const title = 'notifications/get by every combination of filters, over table size';

const MOST_GROWTH = 1.3;
const PAGE = 50;
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

export async function run(laboratory, { rounds, pageSeconds, sizes }) {
  const system = await laboratory.freshSystem('ours');
  const found = COMBINATIONS.map((filters) => ({ name: filters.join(' + '), filters, sizes: [], plans: [] }));
  const base = { operation: 'notifications/get', connections: 1, warmUpSeconds: pageSeconds / 2, seconds: pageSeconds };
  for (const size of sizes) {
    report(`    storing ${whole(size)} notifications`);
    await seedOurs(system.sql, size, { toAll: true });
    for (const one of found) {
      const requests = requestsOf(one.filters, size);
      for (const request of requests.slice(0, 2)) {
        const { result } = await system.call('notifications/get', request);
        if (result.data.length !== PAGE) throw new Error(`${one.name} finds ${result.data.length} of ${PAGE} notifications`);
        one.plans.push({ size, ...(await planOf(system.sql, request)) });
      }
      one.requests = requests;
      one.sizes.push([]);
    }
    // In rounds, so that no combination has the quiet minute for itself.
    for (let round = 0; round < rounds; round++)
      for (const { requests, sizes: runs } of found)
        runs.at(-1).push(await measure(laboratory, system, { ...base, workload: { name: 'requests', requests } }));
    report(`    ${whole(size)}: ${found.map((one) => `${one.name} ${two(p50(one.sizes.at(-1)))} ms`).join(', ')}`);
  }
  return findings(found, sizes);
}

/** In turn of the busy one, and of users that have as many notifications in every table. */
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

const p50 = (runs) => median(runs.map((run) => run.p50));

function findings(found, sizes) {
  const judged = found.map((one) => {
    const medians = one.sizes.map(p50);
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
