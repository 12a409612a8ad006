// Stored notifications by the million, straight into the tables. A user, a document or a location has as many in a large table as in a
// small one; only the busy one has a tenth of all, so that a plan that reads or sorts a whole match is found out.
//
// Number n is the busy one's when it ends in 0. The others come in groups of nine for one user, and the users take turns.

export const ORGANIZATION = 'stored';
const TURNS = 100;
const LOCATIONS = 5;
const USERS_OF_A_DOCUMENT = 10;
const BATCH = 1_000_000;
export const FIRST_TIMESTAMP = 1_700_000_000_000;

/**
 * Each of them has 900 notifications.
 * @param {number} stored
 */
export const usersOf = (stored) => stored / 10 / TURNS;

/**
 * The notifications that each filter finds.
 * @param {number} stored
 * @param {number | 'busy'} user
 * @param {number} count of the newest ids at the location
 */
export function filtersOf(stored, user, count) {
  const at = Array.from({ length: count }, (_, index) => index);
  if (user === 'busy') {
    const notificationIds = at.map((index) => `n${stored - 10 * (index + 1)}`);
    return { documentId: 'busy', locationId: 'busy', userId: 'busy', notificationIds };
  }
  const users = usersOf(stored);
  /** @param {number} index */
  const lastTurn = (index) => TURNS - 1 - LOCATIONS * Math.floor(index / 9);
  return {
    documentId: `document${Math.floor(user / USERS_OF_A_DOCUMENT)}`,
    locationId: `location${(TURNS - 1) % LOCATIONS}`,
    userId: `user${user}`,
    notificationIds: at.map((index) => `n${10 * (user + users * lastTurn(index)) + 9 - (index % 9)}`),
  };
}

/**
 * The same, in SQL.
 * @param {number} stored
 */
function columns(stored) {
  const users = usersOf(stored);
  /** @param {string} other */
  const either = (other) => `CASE WHEN n % 10 = 0 THEN 'busy' ELSE ${other} END`;
  return {
    user: either(`'user' || (n / 10 % ${users})`),
    document: either(`'document' || (n / 10 % ${users} / ${USERS_OF_A_DOCUMENT})`),
    location: either(`'location' || (n / 10 / ${users} % ${LOCATIONS})`),
  };
}

/** @param {string} user */
const contentOf = (user) => `
  '{"actionUser":{"userId":"user1","name":"User Number 1","email":"user1@example.com"},' ||
  '"displayHeadlineMessageTemplate":"{actionUser} mentioned {recipientUser} in {place}",' ||
  '"displayHeadlineMessageTemplateData":{"recipientUser":"you","place":"Paragraph ' || n || '"},' ||
  '"displayBodyMessage":"Could you have a look at the second half of this, please? I am not sure about the numbers.",' ||
  '"notifyUsers":[{"userId":"' || ${user} || '","name":"Somebody"}]}'`;

/**
 * This number of notifications of ours, in place of the ones that were seeded before. The notifications service knows the users.
 * @param {import('pg').Pool} sql
 * @param {number} stored a multiple of 10,000
 * @param {{ toAll: boolean }} options whether every second one of the busy document is to all
 */
export async function seedOurs(sql, stored, { toAll }) {
  const { user, document, location } = columns(stored);
  const client = await sql.connect();
  try {
    await client.query('SET search_path = notifications');
    await client.query('TRUNCATE notifications, recipients, members, complete_members');
    const { rows } = await client.query(
      `INSERT INTO organizations (api_key, organization_id) VALUES ('demo-key', $1)
       ON CONFLICT (api_key, organization_id) DO UPDATE SET organization_id = $1 RETURNING id`,
      [ORGANIZATION],
    );
    const [{ id }] = rows;
    const who = `(SELECT 'user' || n AS user_id FROM generate_series(0, ${usersOf(stored) - 1}) n UNION ALL SELECT 'busy') u`;
    await client.query(`INSERT INTO members SELECT ${id}, user_id, 'organization', '' FROM ${who}`);
    await client.query(`INSERT INTO complete_members SELECT ${id}, user_id FROM ${who}`);
    await withoutIndexes(client, ['notifications', 'recipients'], async () => {
      for (let first = 0; first < stored; first += BATCH) {
        const numbers = `generate_series(${first}, ${Math.min(first + BATCH, stored) - 1}) n`;
        await client.query(`
          INSERT INTO notifications (organization, id, "timestamp", document_id, location_id, notify_all, size, fingerprint, content)
          SELECT ${id}, 'n' || n, ${FIRST_TIMESTAMP} + n, ${document}, ${location}, ${toAll} AND n % 20 = 0,
                 octet_length(content), decode(repeat('00', 32), 'hex'), content::json
          FROM (SELECT n, ${contentOf(user)} AS content FROM ${numbers}) made`);
        await client.query(`
          INSERT INTO recipients (organization, user_id, "timestamp", notification_id, document_id, location_id)
          SELECT ${id}, ${user}, ${FIRST_TIMESTAMP} + n, 'n' || n, ${document}, ${location} FROM ${numbers}`);
      }
    });
    for (const table of ['notifications', 'recipients', 'members', 'complete_members'])
      await client.query(`VACUUM (ANALYZE) ${table}`);
  } finally {
    client.release(true);
  }
}

/**
 * Adds a document whose notifications name as many users each.
 * @param {import('pg').Pool} sql
 * @param {string} documentId
 * @param {number} notifications
 * @param {number} recipients of each
 */
export async function storeDocument(sql, documentId, notifications, recipients) {
  const organization = `(SELECT id FROM notifications.organizations WHERE api_key = 'demo-key' AND organization_id = '${ORGANIZATION}')`;
  const users = `generate_series(1, ${recipients}) u`;
  const content = `json_build_object('actionUser', json_build_object('userId', 'user1'), 'displayHeadlineMessageTemplate', 'Hello',
    'notifyUsers', coalesce((SELECT json_agg(json_build_object('userId', 'reader' || u)) FROM ${users}), '[]'))`;
  await sql.query(
    `INSERT INTO notifications.notifications (organization, id, "timestamp", document_id, notify_all, size, fingerprint, content)
     SELECT ${organization}, $1 || n, ${FIRST_TIMESTAMP} + n, $1, false, octet_length(content::text), decode(repeat('00', 32), 'hex'), content
     FROM (SELECT ${content} AS content) made, generate_series(1, ${notifications}) n`,
    [documentId],
  );
  await sql.query(
    `INSERT INTO notifications.recipients (organization, user_id, "timestamp", notification_id, document_id)
     SELECT ${organization}, 'reader' || u, ${FIRST_TIMESTAMP} + n, $1 || n, $1 FROM generate_series(1, ${notifications}) n, ${users}`,
    [documentId],
  );
}

/**
 * The same of the direct service.
 * @param {import('pg').Pool} sql
 * @param {number} stored
 */
export async function seedDirect(sql, stored) {
  const { user, document, location } = columns(stored);
  const numbers = `generate_series(0, ${stored - 1}) n`;
  await sql.query(`
    INSERT INTO notifications (id, api_key, organization_id, document_id, location_id, notify_all, "timestamp", content)
    SELECT 'n' || n, 'demo-key', '${ORGANIZATION}', ${document}, ${location}, false, ${FIRST_TIMESTAMP} + n,
           (${contentOf(user)})::json FROM ${numbers}`);
  await sql.query(`
    INSERT INTO recipients (api_key, organization_id, user_id, "timestamp", notification_id)
    SELECT 'demo-key', '${ORGANIZATION}', ${user}, ${FIRST_TIMESTAMP} + n, 'n' || n FROM ${numbers}`);
  await sql.query('VACUUM (ANALYZE)');
}

/**
 * Sorted once, indexes are made in a fraction of the time.
 * @param {import('pg').PoolClient} client
 * @param {string[]} tables
 * @param {() => Promise<void>} work
 */
async function withoutIndexes(client, tables, work) {
  const { rows } = await client.query(
    `SELECT i.indexrelid::regclass::text AS name, pg_get_indexdef(i.indexrelid) AS definition
     FROM pg_index i WHERE i.indrelid = ANY ($1::regclass[]) AND NOT i.indisprimary`,
    [tables],
  );
  for (const { name } of rows) await client.query(`DROP INDEX ${name}`);
  await work();
  for (const { definition } of rows) await client.query(definition);
}
