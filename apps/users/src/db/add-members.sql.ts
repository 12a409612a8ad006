import { EVENT_TYPES } from '@app/contracts/event-types';
import type { PreparedStatement } from '@app/postgres/connections/query-prepared';
import { expiredCte, OPERATIONS } from './idempotency-keys.repository';
import type { Level } from './level';
import { live } from './live.sql';
import { organizationCte } from './organization.sql';

const OPERATION = OPERATIONS.add;

/**
 * Returns no row and changes nothing when `organization` is empty, or when the Idempotency-Key has its answer already. (If another transaction
 * is writing that answer, the statement waits and then fails.)
 *
 * Rows of `users` are locked first, in the order of their ids, also by the statements that remove members. The holder of a user's row is
 * the only one that changes memberships of the user. So two statements cannot deadlock, and versions are drawn in the order in which
 * statements hold the row.
 */
const addMembers = (of: Level['of']): PreparedStatement => {
  const table = `${of}_members`;
  const trace = of === 'organization' ? 13 : 14;
  const [column, value, sameId, named, level] =
    of === 'organization'
      ? ['', '', '', '', '']
      : [
          `${of}_id,`,
          '$13::text,',
          `AND m.${of}_id = $13::text`,
          `named AS (
    INSERT INTO ${of}s (organization, ${of}_id) SELECT id, $13::text FROM organization ON CONFLICT DO NOTHING
  ),`,
          `'${of}Id', $13::text,`,
        ];
  const text = `${organizationCte(
    8,
    trace,
    `AND NOT EXISTS (SELECT FROM idempotency_keys WHERE api_key = $1::text AND operation = '${OPERATION}' AND key = $9::text)`,
  )}, sent AS MATERIALIZED (
    SELECT o.id AS organization, s.*
    FROM organization o, unnest($3::text[], $4::text[], $5::text[], $6::text[], $7::boolean[])
      AS s(user_id, name, email, initial, initial_generated)
    ORDER BY s.user_id COLLATE "C"
  ), stored AS (
    INSERT INTO users AS u (organization, user_id, name, email, initial, initial_generated, version)
    SELECT *, nextval('versions') FROM sent
    ON CONFLICT (organization, user_id) DO UPDATE SET
      -- Drawn while the row is locked, so the later of two changes has the greater version.
      version = nextval('versions'),
      name = coalesce(excluded.name, u.name),
      email = coalesce(excluded.email, u.email),
      initial = CASE
        WHEN NOT excluded.initial_generated OR (u.initial_generated AND excluded.name IS NOT NULL) THEN excluded.initial
        ELSE u.initial END,
      initial_generated = u.initial_generated AND excluded.initial_generated
    -- An unchanged user, as on every login, creates no new row version.
    WHERE coalesce(excluded.name <> u.name, excluded.name IS NOT NULL)
      OR coalesce(excluded.email <> u.email, excluded.email IS NOT NULL)
      OR NOT excluded.initial_generated AND (u.initial_generated OR excluded.initial <> u.initial)
    RETURNING user_id, name, email, initial, version, left_version
  ), ${named}
  drawn AS MATERIALIZED (
    -- After all users are locked, so one number is enough for the call.
    SELECT nextval('versions') AS version FROM (SELECT count(*) FROM stored) locked
  ), added AS (
    INSERT INTO ${table} AS m (organization, ${column} user_id, added)
    SELECT organization, ${value} user_id, version FROM sent, drawn
    ON CONFLICT (organization, ${column} user_id) DO UPDATE SET added = excluded.added
    WHERE NOT coalesce((SELECT ${live()} FROM users u WHERE u.organization = m.organization AND u.user_id = m.user_id),
      -- Another call stored the user while this one waited.
      (SELECT ${live()} FROM stored u WHERE u.user_id = m.user_id))
    RETURNING user_id, added
  ), changed AS MATERIALIZED (
    SELECT t.*, coalesce(a.added, (SELECT m.added FROM ${table} m
      WHERE m.organization = (SELECT id FROM organization) ${sameId} AND m.user_id = t.user_id)) AS membership
    FROM stored t LEFT JOIN added a USING (user_id)
  ), begun AS (
    -- A membership that another call began while this one waited is invisible here, and gets the version of this call: without any, listeners that know
    -- an erasure of the user ignore the change.
    INSERT INTO ${table} (organization, ${column} user_id, added)
    SELECT o.id, ${value} c.user_id, d.version FROM changed c, organization o, drawn d WHERE c.membership IS NULL
    ON CONFLICT (organization, ${column} user_id) DO UPDATE SET added = excluded.added
  ), outboxed AS MATERIALIZED (
    SELECT user_id, name, email, initial, version, coalesce(membership, (SELECT version FROM drawn)) AS membership FROM changed
    UNION ALL
    -- A user that another call stored while this one waited is invisible here, but has the values that were sent.
    SELECT s.user_id, coalesce(u.name, s.name), coalesce(u.email, s.email), coalesce(u.initial, s.initial), u.version, added.added
    FROM sent s JOIN added USING (user_id) LEFT JOIN users u ON u.organization = s.organization AND u.user_id = s.user_id
    WHERE NOT EXISTS (SELECT FROM stored WHERE stored.user_id = s.user_id)
  ), user_added AS (
    INSERT INTO outbox (type, api_key, organization_id, data, trace)
    SELECT '${EVENT_TYPES.userAdded}', $1::text, $2::text, json_strip_nulls(json_build_object('organizationId', $2::text, ${level}
      'users', json_agg(json_build_object('userId', user_id, 'name', name, 'email', email, 'initial', initial, 'version', version,
        'membership', membership)))), $${trace}::text
    FROM outboxed HAVING count(*) > 0
  ), ${expiredCte('$1', `'${OPERATION}'`, '$9')}, answered AS (
    INSERT INTO idempotency_keys (api_key, operation, key, fingerprint, answer)
    SELECT $1::text, '${OPERATION}', $9::text, $10::bytea,
      json_build_object('added', (
        SELECT coalesce(json_agg(place), '[]') FROM added JOIN unnest($3::text[], $12::int[]) AS kept(user_id, place) USING (user_id)
      ), 'refused', $11::json)
    FROM organization WHERE $9::text IS NOT NULL
  )
  SELECT (SELECT coalesce(array_agg(user_id), '{}') FROM added) AS added FROM organization`;
  return { name: `add-${of}-members`, text };
};

/**
 * The statement that adds users at each level. Parameters: 1 api key, 2 organizationId, 3 userIds, 4 names, 5 e-mails, 6 initials,
 * 7 whether each initial was generated, 8 deadline, 9 Idempotency-Key, 10 fingerprint, 11 refused entries, 12 places of the users in the
 * request, which the answer keeps instead of their ids, 13 folderId or documentId. The last one is the trace context or null.
 */
export const ADD_MEMBERS: Record<Level['of'], PreparedStatement> = {
  organization: addMembers('organization'),
  folder: addMembers('folder'),
  document: addMembers('document'),
};
