import { EVENT_TYPES } from '@app/contracts/event-types';
import { KEEP_HOURS, OPERATION } from './idempotency-keys.repository';
import { organizationCte } from './organization.sql';

/** Most expired keys that one statement deletes: more than it inserts, so the table shrinks without a separate job. */
const EXPIRED_AT_ONCE = 10;

/**
 * Returns no row and changes nothing when `organization` is empty, or when the Idempotency-Key has its answer already. (If another transaction
 * is writing that answer, the statement waits and then fails.)
 *
 * Rows are locked in the order of their keys, and tables in the same order by all three statements, so two of them cannot deadlock.
 */
const addMembers = ({ named, added, level }: { named: string; added: string; level: string }) => `${organizationCte(
  8,
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
    RETURNING user_id, name, email, initial, version
  ), ${named}
  added AS (
    ${added}
    ON CONFLICT DO NOTHING
    RETURNING user_id
  ), outboxed AS MATERIALIZED (
    SELECT * FROM stored
    UNION ALL
    -- A user that another call stored while this one waited is invisible here, but has the values that were sent.
    SELECT s.user_id, coalesce(u.name, s.name), coalesce(u.email, s.email), coalesce(u.initial, s.initial), u.version
    FROM sent s JOIN added USING (user_id) LEFT JOIN users u ON u.organization = s.organization AND u.user_id = s.user_id
    WHERE NOT EXISTS (SELECT FROM stored WHERE stored.user_id = s.user_id)
  ), user_added AS (
    INSERT INTO outbox (type, api_key, organization_id, data)
    SELECT '${EVENT_TYPES.userAdded}', $1::text, $2::text, json_strip_nulls(json_build_object('organizationId', $2::text, ${level}
      'users', json_agg(json_build_object('userId', user_id, 'name', name, 'email', email, 'initial', initial, 'version', version))))
    FROM outboxed HAVING count(*) > 0
  ), expired AS (
    DELETE FROM idempotency_keys WHERE (api_key, operation, key) IN (
      SELECT api_key, operation, key FROM idempotency_keys
      WHERE $9::text IS NOT NULL AND created_at < now() - interval '${KEEP_HOURS} hours'
        AND (api_key, operation, key) <> ($1::text, '${OPERATION}', $9::text)
      ORDER BY created_at LIMIT ${EXPIRED_AT_ONCE} FOR UPDATE SKIP LOCKED)
  ), answered AS (
    INSERT INTO idempotency_keys (api_key, operation, key, fingerprint, answer)
    SELECT $1::text, '${OPERATION}', $9::text, $10::bytea,
      json_build_object('added', (SELECT coalesce(json_agg(user_id), '[]') FROM added), 'refused', $11::json)
    FROM organization WHERE $9::text IS NOT NULL
  )
  SELECT (SELECT coalesce(array_agg(user_id), '{}') FROM added) AS added FROM organization`;

const addMembersOf = (table: string) =>
  addMembers({
    named: `named AS (
    INSERT INTO ${table}s (organization, ${table}_id) SELECT id, $12::text FROM organization ON CONFLICT DO NOTHING
  ),`,
    level: `'${table}Id', $12::text,`,
    added: `INSERT INTO ${table}_members (organization, ${table}_id, user_id) SELECT organization, $12::text, user_id FROM sent`,
  });

/**
 * The statement that adds users at each level. Parameters: 1 api key, 2 organizationId, 3 userIds, 4 names, 5 e-mails, 6 initials,
 * 7 whether each initial was generated, 8 deadline, 9 Idempotency-Key, 10 fingerprint, 11 refused entries, 12 folderId or documentId.
 */
export const ADD_MEMBERS = {
  organization: {
    name: 'add-organization-members',
    text: addMembers({
      named: '',
      level: '',
      added: 'INSERT INTO organization_members (organization, user_id) SELECT organization, user_id FROM sent',
    }),
  },
  folder: { name: 'add-folder-members', text: addMembersOf('folder') },
  document: { name: 'add-document-members', text: addMembersOf('document') },
} as const;
