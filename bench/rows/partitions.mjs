import { performance } from 'node:perf_hooks';
import pg from 'pg';
import { report } from '../../scripts/checkout/progress.mjs';
import { LAYOUTS, NAMED, firstOf, insertOf, pageOf, storeLayouts } from '../lib/partitioned.mjs';
import { built } from '../lib/plans.mjs';
import { median, spread, two, whole } from '../lib/statistics.mjs';

export const title = 'statements on notifications and recipients in partitions by time';

const PAGE = 50;
const PAGES = 60;
const BATCH = 64;
const DELETED_AT_ONCE = 1000;
const DELETIONS = 20;
const MOST_SLOWER = 1.05;
const LEAST_GAIN = 10;

/** @typedef {import('../lib/partitioned.mjs').Layout} Layout */
/** @typedef {Record<Layout, number>} Times */
const NAMES = /** @type {Layout[]} */ (Object.keys(LAYOUTS));
const [TODAY, ...OTHERS] = NAMES;

/** @param {import('../lib/laboratory.mjs').Laboratory} laboratory @param {import('../lib/modes.mjs').Mode} mode */
export async function run(laboratory, { rounds, seconds, partitionedRecipients }) {
  const system = await laboratory.freshSystem('ours');
  // The services would publish the events of the rows meanwhile.
  for (const child of system.children.splice(0)) await child.stop();
  const stored = partitionedRecipients / NAMED;
  const now = Date.now();
  const clients = /** @type {Record<Layout, pg.Client>} */ (
    Object.fromEntries(NAMES.map((name) => [name, new pg.Client({ connectionString: system.place.databaseUrl })]))
  );
  try {
    for (const client of Object.values(clients)) await client.connect();
    await storeLayouts(clients[TODAY], stored, now);
    for (const name of NAMES) await asTheService(clients[name], name);

    /** @type {Record<string, Times[]>} */
    const pages = Object.fromEntries(Object.keys(filtersOf(stored, 0)).map((filters) => [filters, []]));
    /** @type {Times[]} */
    const inserts = [];
    for (let round = 0; round < rounds; round++) {
      report(`    round ${round + 1} of ${rounds}`);
      for (const filters of Object.keys(pages))
        pages[filters].push(await inTurns(round, (name) => pageTime(clients[name], name, stored, filters)));
      inserts.push(await inTurns(round, (name) => insertTime(clients[name], name, round, seconds)));
    }
    const retention = await inTurns(0, (name) => deletionTime(clients[name], name, now));
    // Set aside from what a system leaves behind, because nobody publishes them.
    await clients[TODAY].query('TRUNCATE notifications.outbox');
    return findings(pages, inserts, retention, stored);
  } finally {
    for (const client of Object.values(clients)) await client.end();
  }
}

/** @param {pg.Client} client @param {Layout} name */
async function asTheService(client, name) {
  const { GENERIC_PLANS } = built('libs/postgres/src/data-source');
  const path = [LAYOUTS[name].schema, 'notifications'].join();
  for (const [setting, value] of Object.entries({ search_path: path, statement_timeout: 60_000, ...GENERIC_PLANS }))
    await client.query(`SET ${setting} = ${value}`);
}

/**
 * Each layout begins in one round, because a machine is not as fast in one minute as in another.
 * @param {number} round
 * @param {(name: Layout) => Promise<number>} work
 */
async function inTurns(round, work) {
  const times = /** @type {Times} */ ({});
  for (let turn = 0; turn < NAMES.length; turn++) {
    const name = NAMES[(round + turn) % NAMES.length];
    times[name] = await work(name);
  }
  return times;
}

/**
 * The filters of all nine combinations for one user in turn.
 * @param {number} stored
 * @param {number} turn
 * @returns {Record<string, import('../lib/partitioned.mjs').Filter>}
 */
function filtersOf(stored, turn) {
  const documents = stored / 1000;
  const document = 1 + ((turn * 37) % (documents - 1));
  // The newest notifications of the document that are not of the busy one, and the user whom the newest of them names first.
  const numbers = Array.from({ length: PAGE * 2 }, (_, index) => stored - documents * (index + 1) + document).filter(
    (n) => n % 10 !== 0,
  );
  const documentId = turn % 2 === 0 || numbers.length === 0 ? 'busy' : `document${document}`;
  const userId = documentId === 'busy' ? 'busy' : `user${(numbers[0] * NAMED) % ((stored * NAMED) / 1000)}`;
  const locationId = documentId === 'busy' ? 'busy' : `location${Math.floor(numbers[0] / documents) % 5}`;
  const ids =
    documentId === 'busy'
      ? Array.from({ length: PAGE }, (_, index) => `n${stored - 10 * (index + 1)}`)
      : numbers.slice(0, PAGE).map((n) => `n${n}`);
  return {
    documentId: { documentId },
    'documentId + notificationIds': { documentId, ids },
    'documentId + locationId': { documentId, locationId },
    'documentId + locationId + notificationIds': { documentId, locationId, ids },
    userId: { userId },
    'userId + notificationIds': { userId, ids },
    'documentId + userId': { documentId, userId },
    'locationId + userId': { locationId, userId },
    'documentId + locationId + userId': { documentId, locationId, userId },
  };
}

/** @param {pg.Client} client @param {Layout} name @param {number} stored @param {string} filters @returns {Promise<number>} milliseconds */
async function pageTime(client, name, stored, filters) {
  /** Of the busy one, and of others. @type {[number[], number[]]} */
  const times = [[], []];
  for (let turn = 0; turn < PAGES; turn++) {
    const query = pageOf(name, filtersOf(stored, turn)[filters], PAGE);
    const from = performance.now();
    const { rows } = await client.query(query);
    times[turn % 2].push(performance.now() - from);
    if (rows.length === 0) throw new Error(`no page of ${filters} for turn ${turn}`);
  }
  return (median(times[0]) + median(times[1])) / 2;
}

let inserted = 0;

/** @param {pg.Client} client @param {Layout} name @param {number} round @param {number} seconds @returns {Promise<number>} milliseconds for each batch */
async function insertTime(client, name, round, seconds) {
  const statement = insertOf(name);
  const positions = Array.from({ length: BATCH }, (_, position) => position);
  /** @param {unknown} value */
  const each = (value) => positions.map(() => value);
  const from = performance.now();
  let batches = 0;
  for (; performance.now() - from < seconds * 1000; batches++) {
    const first = inserted;
    inserted += BATCH;
    const { rowCount } = await client.query({
      ...statement,
      values: [
        positions.flatMap((position) => Array.from({ length: NAMED }, () => position)),
        positions.flatMap((position) => Array.from({ length: NAMED }, (_, index) => `user${(first + position) * NAMED + index}`)),
        positions,
        each('demo-key'),
        each('partitions'),
        positions.map((position) => `added${first + position}`),
        each('busy'),
        each('busy'),
        each(false),
        each(Buffer.alloc(32)),
        each(JSON.stringify({ displayBodyMessage: 'text '.repeat(20) })),
        each(null),
        positions.map((position) => `00000000-0000-4000-8000-${String(first + position).padStart(12, '0')}`),
        each(null),
      ],
    });
    if (rowCount !== BATCH) throw new Error(`${rowCount} of ${BATCH} notifications were inserted in round ${round}`);
  }
  return (performance.now() - from) / batches;
}

/**
 * What retention takes for the oldest notifications, with their recipients.
 *
 * @param {pg.Client} client
 * @param {Layout} name
 * @param {number} now
 * @returns {Promise<number>} milliseconds for each 1000 notifications
 */
async function deletionTime(client, name, now) {
  const { DELETE_OLD } = built('apps/notifications/src/db/retention.repository');
  const { schema, tables } = LAYOUTS[name];
  const oldest = firstOf(now, 1);
  const from = performance.now();
  let thousands = DELETIONS;
  if (!tables.includes('notifications'))
    for (let times = 0; times < DELETIONS; times++)
      if (tables.includes('recipients')) await client.query(withoutRecipients(oldest));
      else await client.query(DELETE_OLD, [Date.now() - oldest, DELETED_AT_ONCE]);
  const deletedIn = performance.now() - from;
  if (tables.length === 0) return deletedIn / thousands;
  const { rows } = await client.query(`SELECT count(*)::int AS count FROM ${schema}.recipients_0`);
  const droppedAt = performance.now();
  if (tables.includes('notifications')) {
    await client.query({ text: 'DELETE FROM notification_ids WHERE "timestamp" < $1', values: [oldest] });
    await client.query(`DROP TABLE ${schema}.notifications_0`);
    thousands = Infinity;
  }
  await client.query(`DROP TABLE ${schema}.recipients_0`);
  return deletedIn / thousands + (performance.now() - droppedAt) / (rows[0].count / NAMED / 1000);
}

/** @param {number} oldest */
const withoutRecipients = (oldest) => `
  DELETE FROM notifications WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM notifications WHERE "timestamp" < ${oldest} AND document_id <> '' ORDER BY "timestamp" LIMIT ${DELETED_AT_ONCE}
    FOR UPDATE SKIP LOCKED))`;

/**
 * @param {Record<string, Times[]>} pages
 * @param {Times[]} inserts
 * @param {Times} retention
 * @param {number} stored
 */
function findings(pages, inserts, retention, stored) {
  /** @param {Times[]} rounds @param {Layout} name */
  const ratios = (rounds, name) => rounds.map((times) => times[name] / times[TODAY]);
  const verdicts = OTHERS.map((name) => {
    const all = Object.values(pages).map((rounds) => median(ratios(rounds, name)));
    const worst = Math.max(...all);
    const gain = retention[TODAY] / retention[name];
    return {
      what: `${whole(stored * NAMED)} recipients, ${name}: the slowest kind of page, and the gain of retention`,
      target: `to adopt it: at most ${MOST_SLOWER} ×, at least ${LEAST_GAIN} ×`,
      reached: `${two(worst)} ×, ${two(gain)} ×`,
      spread: `${two(Math.min(...all))}–${two(worst)} × over the filters`,
      met: worst <= MOST_SLOWER && gain >= LEAST_GAIN,
    };
  });
  /** @param {string} what @param {Times[]} rounds */
  const row = (what, rounds) => [
    what,
    two(median(rounds.map((times) => times[TODAY]))),
    ...OTHERS.map((name) => {
      const found = ratios(rounds, name);
      return rounds.length === 1 ? `${two(found[0])} ×` : `${two(median(found))} × (${spread(found, (ratio) => ratio, two)})`;
    }),
  ];
  const table = {
    title: `${title}: milliseconds of a statement`,
    head: ['statement', TODAY, ...OTHERS],
    rows: [
      ...Object.entries(pages).map(([filters, rounds]) => row(`page of 50 by ${filters}`, rounds)),
      row(`insertion of ${BATCH} with ${NAMED} recipients each`, inserts),
      row('retention, for each 1,000 notifications', [retention]),
    ],
  };
  return { verdicts, tables: [table] };
}
