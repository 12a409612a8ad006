/** The number of an organization, which is created when missing. It waits for another transaction that is creating the same one. */
export const ORGANIZATION = `
  known AS MATERIALIZED (
    SELECT id FROM organizations WHERE api_key = $1 AND organization_id = $2
  ), created AS (
    INSERT INTO organizations (api_key, organization_id) SELECT $1, $2 WHERE NOT EXISTS (SELECT FROM known)
    ON CONFLICT (api_key, organization_id) DO UPDATE SET organization_id = excluded.organization_id
    RETURNING id
  ), organization AS MATERIALIZED (
    SELECT id FROM known UNION ALL SELECT id FROM created
  )`;

/**
 * Users of an event, in `sent`, and those of them in `erased` who were erased after the change that the event is about. They are looked up one by
 * one only when the API key has erased users: most keys have none.
 */
const SENT = (versions: string) => `
  sent AS MATERIALIZED (
    SELECT o.id AS organization, u.user_id, u.version FROM organization o, unnest($3::text[], ${versions}::bigint[]) AS u(user_id, version)
  ), erased AS MATERIALIZED (
    SELECT s.organization, s.user_id FROM sent s WHERE (SELECT EXISTS (SELECT FROM erased_users WHERE api_key = $1)) AND EXISTS (
      SELECT FROM erased_users x CROSS JOIN LATERAL (SELECT * FROM erasures e WHERE e.id = x.erasure OFFSET 0) e
      WHERE x.api_key = $1 AND x.user_hash = sha256(convert_to(s.user_id, 'UTF8')) AND e.version >= coalesce(s.version, 0)
        AND (e.organization_ids IS NULL OR $2 = ANY (e.organization_ids)))
  )`;
const NOT_ERASED = 'WHERE u.user_id NOT IN (SELECT user_id FROM erased)';

/**
 * A day less than erasures are kept, and ended memberships are kept longer: clocks differ, and an event is written a moment before its membership ends. An
 * older addition comes from a letter that was replayed, or after a long outage.
 */
const IS_NEW = `to_timestamp($7::bigint / 1000.0) > now() - interval '6 days'`;

/**
 * The greatest version counts, so that order and repetition do not matter. An addition without a version, of an earlier process of users, may be newer
 * than a known removal. One that began before an erasure may have been committed after it. The removal or the erasure that ended an old one may be
 * deleted already. In these cases the next read asks the users service. OFFSET 0 keeps each look-up separate.
 */
export const ADD = {
  name: 'copy-members',
  text: `
  WITH ${ORGANIZATION}, ${SENT('$6')}, asked_again AS (
    DELETE FROM complete_members c USING sent s
    WHERE c.organization = s.organization AND c.user_id = s.user_id AND (NOT ${IS_NEW}
      OR s.user_id IN (SELECT user_id FROM erased) OR s.version IS NULL AND (
      EXISTS (SELECT FROM members m WHERE m.organization = s.organization AND m.user_id = s.user_id
        AND m.level = $4 AND m.id = $5 AND m.removed >= 0 OFFSET 0)
      OR EXISTS (SELECT FROM departures d WHERE d.organization = s.organization AND d.user_id = s.user_id OFFSET 0)))
  )
  INSERT INTO members AS m (organization, user_id, level, id, added)
  SELECT organization, user_id, $4, $5, coalesce(version, 0) FROM sent u ${NOT_ERASED} AND ${IS_NEW} ORDER BY user_id COLLATE "C"
  ON CONFLICT (organization, user_id, level, id) DO UPDATE SET added = excluded.added WHERE m.added < excluded.added`,
};

/** A removal that arrives before its addition leaves a row that refuses the addition. */
export const REMOVE = {
  name: 'end-members',
  text: `
  WITH ${ORGANIZATION}, ${SENT('$6')}
  INSERT INTO members AS m (organization, user_id, level, id, added, removed)
  SELECT u.organization, u.user_id, $4, $5, -1, u.version FROM sent u ${NOT_ERASED}
  ORDER BY u.user_id COLLATE "C"
  ON CONFLICT (organization, user_id, level, id) DO UPDATE SET removed = excluded.removed WHERE m.removed < excluded.removed`,
};

export const LEAVE = {
  name: 'copy-departures',
  text: `
  WITH ${ORGANIZATION}, ${SENT('$4')}
  INSERT INTO departures AS d (organization, user_id, version)
  SELECT u.organization, u.user_id, u.version FROM sent u ${NOT_ERASED}
  ORDER BY u.user_id COLLATE "C"
  ON CONFLICT (organization, user_id) DO UPDATE SET version = excluded.version WHERE d.version < excluded.version`,
};

export const SET_DOCUMENT = {
  name: 'copy-document',
  text: `
  WITH ${ORGANIZATION}
  INSERT INTO document_access AS d (organization, document_id, folder_id, access, version)
  SELECT id, $3, $4, $5, $6 FROM organization
  ON CONFLICT (organization, document_id) DO UPDATE SET
    folder_id = excluded.folder_id, access = excluded.access, version = excluded.version
  WHERE d.version < excluded.version`,
};

export const FIND = {
  name: 'is-complete',
  text: `
  SELECT EXISTS (SELECT FROM complete_members c WHERE c.organization = o.id AND c.user_id = $3) AS complete,
         EXISTS (SELECT FROM notifications n WHERE n.organization = o.id AND n.notify_all) AS matters
  FROM organizations o
  WHERE o.api_key = $1 AND o.organization_id = $2`,
};
