import { expiredCte } from './idempotency-keys.repository';
import { admittedCte } from './organization.sql';

/** Most pairs of a user and an organization that one statement hides. */
const MOST_PAIRS = 5000;

/** Most rows of users with the given ids, of all tenants, that are looked through for those of one tenant. It takes 0.15 s. */
const MOST_OF_ALL_TENANTS = 100_000;

const FEW_ENOUGH = `(SELECT count(*) FROM found) <= ${MOST_PAIRS}`;

/**
 * Hides users: no details, and all memberships ended. The row in `erasures` finds the rest of them. Returns no row and changes nothing when
 * it is too late, or when the key has its answer already. Locks users as the statements that add and remove members do, in the order of organizations,
 * and draws the version under these locks.
 *
 * Parameters: 1 api key, 2 userIds, 3 deadline, 4 operation and 5 key of the answer, 6 fingerprint, 7 organizationIds or null.
 *
 * @param found SQL for the pairs of a user and an organization of `tenant`
 */
const eraseUsers = (name: string, found: string) => ({
  name,
  text: `
  WITH ${admittedCte(
    3,
    'AND NOT EXISTS (SELECT FROM idempotency_keys WHERE api_key = $1::text AND operation = $4::text AND key = $5::text)',
  )}, tenant AS (
    SELECT k.key FROM admitted, api_keys k WHERE k.key = $1::text
  ), found AS MATERIALIZED (
    ${found} LIMIT ${MOST_PAIRS + 1}
  ), locked AS MATERIALIZED (
    -- One by one, in this order: a join may read all rows with these ids, those of other tenants too.
    SELECT f.organization, f.user_id FROM (SELECT * FROM found WHERE ${FEW_ENOUGH} ORDER BY organization, user_id) f CROSS JOIN LATERAL (
      SELECT FROM users u WHERE u.organization = f.organization AND u.user_id = f.user_id FOR NO KEY UPDATE OF u
    ) u
  ), drawn AS MATERIALIZED (
    -- After all users are locked, so one number is enough for the call.
    SELECT nextval('versions') AS version, clock_timestamp() AS at
    FROM tenant, (SELECT count(*) FROM locked) locked WHERE ${FEW_ENOUGH}
  ), hidden AS (
    UPDATE users u SET name = NULL, email = NULL, initial = NULL, initial_generated = true, version = d.version, left_version = d.version
    -- Arrays, of which a plan expects few elements: it looks each row up, where a join may read all users.
    FROM drawn d, unnest(ARRAY(SELECT organization FROM locked), ARRAY(SELECT user_id FROM locked)) AS l(organization, user_id)
    WHERE u.organization = l.organization AND u.user_id = l.user_id
  ), erasure AS (
    INSERT INTO erasures (api_key, user_ids, organization_ids, version, requested_at)
    SELECT $1::text, $2::text[], $7::text[], version, at FROM drawn
  ), ${expiredCte('$1', '$4::text', '$5')}, answered AS (
    INSERT INTO idempotency_keys (api_key, operation, key, fingerprint, answer)
    SELECT $1::text, $4::text, $5::text, $6::bytea, '{}' FROM drawn
  )
  SELECT EXISTS (SELECT FROM tenant) AS known, NOT ${FEW_ENOUGH} AS too_many, (SELECT count(*)::int FROM locked) AS pairs FROM admitted`,
});

/**
 * In all organizations of the tenant. Other tenants may have users with the same ids, in any number of organizations. With many such rows each
 * organization of the tenant is looked at instead, so that an erasure costs what its tenant has. It is looked at for the ids only that have more than
 * their share of the rows: all others together have at most `most`.
 *
 * @param most most rows that are looked through; other numbers than the default are for tests
 */
export const eraseEverywhere = (most = MOST_OF_ALL_TENANTS) => {
  const share = `${most} / cardinality($2::text[])`;
  const ofId = (limit: string) =>
    `SELECT FROM users u WHERE u.user_id = wanted.user_id ORDER BY u.organization LIMIT (SELECT ${limit} + 1)`;
  const common = 'ARRAY(SELECT user_id FROM common)';
  return eraseUsers(
    most === MOST_OF_ALL_TENANTS ? 'erase-users' : `erase-users ${most}`,
    `WITH same_ids AS MATERIALIZED (
      SELECT count(*) > ${most} AS are_many FROM (
        SELECT FROM unnest($2::text[]) AS wanted(user_id) CROSS JOIN LATERAL (${ofId(`${most}`)}) u LIMIT ${most + 1}
      ) bounded
    ), common AS MATERIALIZED (
      SELECT user_id FROM unnest($2::text[]) AS wanted(user_id)
      WHERE (SELECT are_many FROM same_ids) AND (SELECT count(*) FROM (${ofId(share)}) bounded) > ${share}
    )
    SELECT u.organization, u.user_id FROM tenant CROSS JOIN (
      SELECT user_id FROM unnest($2::text[]) AS wanted(user_id) WHERE user_id <> ALL (${common})
    ) wanted CROSS JOIN LATERAL (
      SELECT u.organization, u.user_id FROM users u
      WHERE u.user_id = wanted.user_id AND (SELECT o.api_key FROM organizations o WHERE o.id = u.organization) = tenant.key OFFSET 0
    ) u
    UNION ALL
    SELECT u.organization, u.user_id FROM tenant CROSS JOIN LATERAL (
      SELECT o.id FROM organizations o WHERE EXISTS (SELECT FROM common) AND o.api_key = tenant.key OFFSET 0
    ) o CROSS JOIN LATERAL (
      SELECT u.organization, u.user_id FROM users u WHERE u.organization = o.id AND u.user_id = ANY (${common}) OFFSET 0
    ) u`,
  );
};

export const ERASE_EVERYWHERE = eraseEverywhere();

/** In the organizations of $7. */
export const ERASE_IN_ORGANIZATIONS = eraseUsers(
  'erase-users-in-organizations',
  `SELECT u.organization, u.user_id FROM tenant CROSS JOIN unnest($7::text[]) AS named(organization_id) CROSS JOIN LATERAL (
      SELECT o.id FROM organizations o WHERE o.api_key = tenant.key AND o.organization_id = named.organization_id OFFSET 0
    ) o CROSS JOIN LATERAL (
      SELECT u.organization, u.user_id FROM users u WHERE u.organization = o.id AND u.user_id = ANY ($2::text[]) OFFSET 0
    ) u`,
);
