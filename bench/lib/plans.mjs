import { built } from './built.mjs';

const TABLES = ['notifications', 'recipients'];
/** Pages are read from up to three ranges, each with one row more than the page. */
const MOST_PAGES = 4;

/** @typedef {{ organizationId: string, pageSize: number, notificationIds?: string[], documentId?: string, locationId?: string, userId?: string }} PageRequest */

/**
 * A node in the output of EXPLAIN.
 * @typedef {Record<string, any> & { Plans?: PlanNode[] }} PlanNode
 */

/**
 * How PostgreSQL carries out a read: whether each table is read by an index, and nothing more than a few pages of it.
 * @param {import('pg').Pool} sql
 * @param {PageRequest} request of notifications/get
 * @returns {Promise<{ indexes: string[], problems: string[], rows: number }>} `rows`: the most that one node has read or sorted
 */
export async function planOf(sql, { organizationId, notificationIds, pageSize, ...filters }) {
  const { pageQuery } = built('apps/notifications/src/db/pages.repository');
  const { GENERIC_PLANS } = built('libs/postgres/src/connections/data-source');
  const filter = { apiKey: 'demo-key', organizationId, ...filters, ids: notificationIds };
  const { text, values } = pageQuery(filter, { newestFirst: true, size: pageSize });
  const client = await sql.connect();
  try {
    // As the service has it planned.
    const parameters = Object.entries({ search_path: 'notifications', ...GENERIC_PLANS });
    await client.query(`${parameters.map(([name, value]) => `SET ${name} = ${value};`).join('')} PREPARE page AS ${text}`);
    const literals = values.map((/** @type {unknown} */ value) =>
      client.escapeLiteral(Array.isArray(value) ? `{${value.join()}}` : String(value)),
    );
    const { rows } = await client.query(`EXPLAIN (ANALYZE, FORMAT JSON, TIMING OFF) EXECUTE page (${literals.join()})`);
    return judged(flatten(rows[0]['QUERY PLAN'][0].Plan), MOST_PAGES * (pageSize + 1));
  } finally {
    client.release(true);
  }
}

/** @param {PlanNode[]} nodes @param {number} most */
function judged(nodes, most) {
  const scans = nodes.filter((node) => TABLES.includes(node['Relation Name']));
  const sorts = nodes.filter((node) => /Sort/.test(node['Node Type']));
  const problems = scans
    .filter((node) => !/Index/.test(node['Node Type']))
    .map((node) => `${node['Node Type']} of ${node['Relation Name']}`);
  // Over all loops; what a filter throws away has been read, and what a top-N sort throws away has been sorted.
  /** @param {PlanNode} node */
  const touched = (node) => node['Actual Loops'] * (node['Actual Rows'] + (node['Rows Removed by Filter'] ?? 0));
  /** @param {PlanNode} node */
  const sorted = (node) => (node.Plans ?? []).reduce((sum, input) => sum + touched(input), 0);
  const rows = Math.max(0, ...scans.map(touched), ...sorts.map(sorted));
  if (rows > most) problems.push(`${rows} rows read or sorted for a page`);
  return { indexes: [...new Set(scans.map((node) => node['Index Name']).filter(Boolean))], problems, rows };
}

/** @param {PlanNode} node @returns {PlanNode[]} */
const flatten = (node) => [node, ...(node.Plans ?? []).flatMap(flatten)];
