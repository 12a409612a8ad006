import type { QueryRunner } from 'typeorm';

/** Notifications of a distribution. */
export const MANY = 20_000;

const ALL = () => `'busy'`;
const ONE_IN_FIVE = (column: string) => `CASE n % 5 WHEN 0 THEN 'busy' ELSE '${column}' || n END`;

/** Name, SQL of a column's value for notification n, and the number of other organizations, each with one notification. */
export type Distribution = readonly [name: string, valueOf: (column: string) => string, others: number];

/** Of the user, the document and the location 'busy'. */
export const DISTRIBUTIONS: readonly Distribution[] = [
  ['all there is', ALL, 0],
  ['one in five, the others of thousands', ONE_IN_FIVE, 0],
  ['all of one organization among thousands', ALL, MANY],
  ['one in five of one organization, the others of thousands', ONE_IN_FIVE, MANY],
];

/**
 * Notifications m1 to m{@link MANY} of organization org of the key tenant, with their numbers as timestamps. Every twentieth is to all.
 *
 * @returns key of the organization in the tables
 */
export async function store(runner: QueryRunner, [, valueOf, others]: Distribution): Promise<string> {
  const [{ id }] = (await runner.query(
    `INSERT INTO organizations (api_key, organization_id) VALUES ('tenant', 'org') RETURNING id`,
  )) as [{ id: string }];
  const [user, document, location] = ['user', 'document', 'location'].map(valueOf);
  await runner.query(
    `INSERT INTO notifications (organization, id, "timestamp", document_id, location_id, notify_all, size, fingerprint, content)
     SELECT $1, 'm' || n, n, ${document}, ${location}, n % 20 = 0, 2, '\\x00',
       json_build_object('notifyUsers', json_build_array(json_build_object('userId', ${user}))) FROM generate_series(1, ${MANY}) n`,
    [id],
  );
  await runner.query(
    `INSERT INTO recipients (organization, user_id, "timestamp", notification_id, document_id, location_id)
     SELECT $1, ${user}, n, 'm' || n, ${document}, ${location} FROM generate_series(1, ${MANY}) n`,
    [id],
  );
  await runner.query(`
    WITH other AS (
      INSERT INTO organizations (api_key, organization_id) SELECT 'tenant', n FROM generate_series(1, ${others}) n RETURNING id
    ), added AS (
      INSERT INTO notifications (organization, id, "timestamp", document_id, location_id, notify_all, size, fingerprint, content)
      SELECT id, 'm', id, 'doc', 'loc', true, 2, '\\x00', '{}' FROM other
    )
    INSERT INTO recipients (organization, user_id, "timestamp", notification_id, document_id, location_id)
    SELECT id, 'user', id, 'm', 'doc', 'loc' FROM other`);
  // The user sees the document in two ways: notifyAll rows are read for each of them. Many others have ended.
  await runner.query(`INSERT INTO members VALUES ($1, 'busy', 'organization', '', 2), ($1, 'busy', 'document', 'busy', 2)`, [id]);
  await runner.query(
    `INSERT INTO members SELECT $1, 'busy', CASE n % 2 WHEN 0 THEN 'document' ELSE 'folder' END, 'ended' || n, 1, 2
     FROM generate_series(1, 2000) n`,
    [id],
  );
  return id;
}
