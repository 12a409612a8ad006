// The tables of notifications in three layouts, each in a schema of its own, with the same rows: as they are, with the recipients in
// partitions by time, and with the notifications in partitions, too.
import { report } from '../../scripts/checkout/progress.mjs';
import { built } from './plans.mjs';
import { whole } from './statistics.mjs';

export const PARTITIONS = 12;
export const PARTITION_MS = 24 * 60 * 60 * 1000;
export const NAMED = 5;
const ROWS_OF_A_USER = 1000;
const LOCATIONS = 5;
const BATCH = 500_000;
const ORGANIZATION = 'partitions';

/** @typedef {'one table each' | 'recipients in partitions' | 'both in partitions'} Layout */
/** @typedef {{ documentId?: string, locationId?: string, userId?: string, ids?: string[] }} Filter */
/** @type {Record<Layout, { schema: string, tables: string[] }>} */
export const LAYOUTS = {
  'one table each': { schema: 'unpartitioned', tables: [] },
  'recipients in partitions': { schema: 'partitioned', tables: ['recipients'] },
  'both in partitions': { schema: 'partitioned_both', tables: ['recipients', 'notifications'] },
};
const COLUMNS = {
  notifications: 'organization, id, "timestamp", document_id, location_id, notify_all, size, fingerprint, content',
  recipients: 'organization, user_id, "timestamp", notification_id, document_id, location_id',
};

/** The last partition has the rows of now, and is open at its end. */
export const firstOf = (/** @type {number} */ now, /** @type {number} */ partition) =>
  now - (PARTITIONS - partition) * PARTITION_MS;

/**
 * Notification n of `stored` is of the busy document and names the busy user when n ends in 0.
 *
 * @param {import('pg').Client} client
 * @param {number} stored notifications, each with five recipients
 * @param {number} now
 */
export async function storeLayouts(client, stored, now) {
  await client.query("SET search_path = notifications; SET maintenance_work_mem = '1GB'");
  const { rows } = await client.query(
    "INSERT INTO organizations (api_key, organization_id) VALUES ('demo-key', $1) RETURNING id",
    [ORGANIZATION],
  );
  const [{ id }] = rows;
  const users = (stored * NAMED) / ROWS_OF_A_USER;
  const documents = stored / ROWS_OF_A_USER;
  /** @param {string} other @param {string} name */
  const either = (name, other) => `CASE WHEN n % 10 = 0 THEN 'busy' ELSE '${name}' || ${other} END`;
  const document = either('document', `(n % ${documents})`);
  const location = either('location', `(n / ${documents} % ${LOCATIONS})`);
  const named = `(CASE WHEN n % 10 = 0 AND j = 0 THEN 'busy' ELSE 'user' || ((n * ${NAMED} + j) % ${users}) END)`;
  const time = `${firstOf(now, 0)} + n::bigint * ${PARTITIONS * PARTITION_MS} / ${stored}`;
  await client.query(`INSERT INTO documents SELECT DISTINCT ${id}, 'document' || n FROM generate_series(0, ${documents - 1}) n`);
  await client.query(`INSERT INTO documents VALUES (${id}, 'busy')`);
  const everybody = `(SELECT 'user' || n AS user_id FROM generate_series(0, ${users - 1}) n UNION ALL SELECT 'busy') u`;
  await client.query(`INSERT INTO members SELECT ${id}, user_id, 'organization', '' FROM ${everybody}`);
  const content = `json_build_object('actionUser', json_build_object('userId', 'user1', 'name', 'User Number 1'),
    'displayHeadlineMessageTemplate', '{actionUser} mentioned you in {place}', 'displayBodyMessage', repeat('text ', 20),
    'notifyUsers', (SELECT json_agg(json_build_object('userId', ${named})) FROM generate_series(0, ${NAMED - 1}) j))::text`;
  for (const [layout, { schema, tables }] of Object.entries(LAYOUTS)) {
    report(`    storing ${whole(stored)} notifications with ${NAMED} recipients each: ${layout}`);
    const indexes = await create(client, schema, tables, now);
    for (let first = 0; first < stored; first += BATCH) {
      const numbers = `generate_series(${first}, ${Math.min(first + BATCH, stored) - 1}) n`;
      await client.query(`
        INSERT INTO notifications (${COLUMNS.notifications})
        SELECT ${id}, 'n' || n, ${time}, ${document}, ${location}, n % 20 = 0, octet_length(content), decode(repeat('00', 32), 'hex'), content::json
        FROM (SELECT n, ${content} AS content FROM ${numbers}) made`);
      await client.query(`
        INSERT INTO recipients (${COLUMNS.recipients})
        SELECT ${id}, ${named}, ${time}, 'n' || n, ${document}, ${location} FROM ${numbers}, generate_series(0, ${NAMED - 1}) j`);
    }
    if (tables.includes('notifications'))
      await client.query('INSERT INTO notification_ids SELECT organization, id, "timestamp" FROM notifications');
    for (const definition of indexes) await client.query(definition);
  }
  await client.query('VACUUM (ANALYZE)');
}

/**
 * @param {import('pg').Client} client
 * @param {string} schema
 * @param {string[]} partitioned
 * @param {number} now
 * @returns {Promise<string[]>} the statements that make the indexes: sorted once, an index is made in a fraction of the time
 */
async function create(client, schema, partitioned, now) {
  const { rows } = await client.query(`
    SELECT pg_get_indexdef(i.indexrelid) AS definition
    FROM pg_index i WHERE i.indrelid IN ('notifications.notifications'::regclass, 'notifications.recipients'::regclass)`);
  await client.query(`CREATE SCHEMA ${schema}; SET search_path = ${schema}, notifications`);
  for (const table of ['notifications', 'recipients']) {
    const like = `(LIKE notifications.${table} INCLUDING ALL EXCLUDING INDEXES)`;
    if (!partitioned.includes(table)) {
      await client.query(`CREATE TABLE ${schema}.${table} ${like}`);
      await keepDistinct(client, schema, table, table);
      continue;
    }
    await client.query(`CREATE TABLE ${schema}.${table} ${like} PARTITION BY RANGE ("timestamp")`);
    await keepDistinct(client, schema, table, table, '_inherited');
    for (let partition = 0; partition < PARTITIONS; partition++) {
      const to = partition === PARTITIONS - 1 ? 'MAXVALUE' : firstOf(now, partition + 1);
      await client.query(`CREATE TABLE ${schema}.${table}_${partition} PARTITION OF ${schema}.${table}
        FOR VALUES FROM (${firstOf(now, partition)}) TO (${to})`);
      await keepDistinct(client, schema, table, `${table}_${partition}`);
    }
  }
  // A unique index of a partitioned table must have the key of the partitions, so that the id of a notification needs a table of its own.
  if (partitioned.includes('notifications'))
    await client.query(`CREATE TABLE ${schema}.notification_ids (organization bigint, id text COLLATE "C", "timestamp" bigint,
      PRIMARY KEY (organization, id)); CREATE INDEX ON ${schema}.notification_ids ("timestamp")`);
  return rows.map(({ definition }) =>
    definition
      .replace(' ON notifications.', ` ON ${schema}.`)
      .replace(
        '(organization, id)',
        partitioned.includes('notifications') ? '(organization, id, "timestamp")' : '(organization, id)',
      ),
  );
}

/**
 * The numbers of distinct values that a migration sets by hand.
 *
 * @param {import('pg').Client} client
 * @param {string} schema
 * @param {string} from
 * @param {string} to
 */
async function keepDistinct(client, schema, from, to, suffix = '') {
  const { rows } = await client.query(
    `SELECT attname, split_part(attoptions[1], '=', 2) AS count FROM pg_attribute
     WHERE attrelid = $1::regclass AND attoptions IS NOT NULL`,
    [`notifications.${from}`],
  );
  for (const { attname, count } of rows)
    await client.query(`ALTER TABLE ${schema}.${to} ALTER "${attname}" SET (n_distinct${suffix} = ${count})`);
}

/**
 * A page of `notifications/get` as the service reads it, for one layout.
 *
 * @param {Layout} layout
 * @param {Filter} filter
 * @param {number} size
 * @returns {{ name: string, text: string, values: unknown[] }}
 */
export function pageOf(layout, filter, size) {
  const { pageQuery } = built('apps/notifications/src/db/pages.repository');
  const query = pageQuery({ apiKey: 'demo-key', organizationId: ORGANIZATION, ...filter }, { newestFirst: true, size });
  if (!LAYOUTS[layout].tables.includes('notifications')) return query;
  let text = changed(query.text, 't.id = page.id LIMIT 1', 't.id = page.id AND t."timestamp" = page."timestamp" LIMIT 1');
  if (filter.ids)
    text = changed(
      text,
      /SELECT \* FROM notifications n WHERE n\.organization = (\(.*?\)) AND n\.id = given\.id OFFSET 0/s,
      `SELECT n.* FROM (SELECT * FROM notification_ids i WHERE i.organization = $1 AND i.id = given.id OFFSET 0) i
         CROSS JOIN LATERAL (SELECT * FROM notifications n
           WHERE n.organization = i.organization AND n.id = i.id AND n."timestamp" = i."timestamp" OFFSET 0) n`,
    );
  return { ...query, text };
}

/**
 * The insertion of a batch as the writer does it, for one layout.
 *
 * @param {Layout} layout
 */
export function insertOf(layout) {
  const { INSERT_KNOWN } = built('apps/notifications/src/db/insert-notifications.sql');
  if (!LAYOUTS[layout].tables.includes('notifications')) return INSERT_KNOWN;
  const withIds = changed(
    INSERT_KNOWN.text,
    'inserted AS (',
    `taken AS (
    INSERT INTO notification_ids (organization, id, "timestamp")
    SELECT organization, l.id, moment.ms FROM located l, moment ORDER BY organization, l.id ON CONFLICT DO NOTHING
    RETURNING organization, id
  ), inserted AS (`,
  );
  const fromThem = changed(
    withIds,
    'FROM located l, moment ORDER BY organization, l.id\n    ON CONFLICT (organization, id) DO NOTHING',
    'FROM located l JOIN taken USING (organization, id), moment ORDER BY organization, l.id',
  );
  return {
    name: INSERT_KNOWN.name,
    text: fromThem.replace(
      'SELECT organization, l.id, moment.ms, document_id',
      'SELECT organization, id, moment.ms, document_id',
    ),
  };
}

/** @param {string} text @param {string | RegExp} part @param {string} by */
function changed(text, part, by) {
  const after = text.replace(part, by);
  if (after === text) throw new Error(`the statement has no ${part} any more`);
  return after;
}
