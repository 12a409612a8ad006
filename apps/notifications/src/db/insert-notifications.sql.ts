import { KEEP_KEYS_HOURS } from '@app/postgres/retention/expired-keys';

/** Operation name of notifications/add in the idempotency keys. */
const OPERATION = 'notifications.add';

/** Expired keys deleted for each inserted key. More than 1, so the table shrinks without a separate job. */
const EXPIRED_FOR_EACH = 4;

/** Arrays with an element for each notification. The two values before them are about the recipients, see {@link STORE}. */
const INPUT = `$3::int[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[], $9::boolean[], $10::bytea[], $11::text[],
                                   $12::bigint[], $13::text[], $14::text[]`;
const COLUMNS = `position, api_key, organization_id, id, document_id, location_id, notify_all, fingerprint, content, deadline, event_id, trace`;

const MOMENT = `
  moment AS MATERIALIZED (
    SELECT (extract(epoch FROM now) * 1000)::bigint AS ms,
           extract(epoch FROM now + current_setting('statement_timeout')::interval) * 1000 AS latest_end
    FROM (SELECT clock_timestamp() AS now) clock
  )`;
const IN_TIME = '(t.deadline IS NULL OR moment.latest_end <= t.deadline + 500)';

/**
 * The number of the organization, unless a notification with this id is visible. ON CONFLICT sees that as well, but it waits for a transaction that
 * changes the row, such as a deletion or a step of an erasure, and with it all that share the statement. A value, because a condition would make the
 * planner expect a single row.
 */
const unlessStored = (organization: string, id: string) =>
  `CASE WHEN (SELECT true FROM notifications n WHERE n.organization = ${organization} AND n.id = ${id}) IS NULL THEN ${organization} END`;

/** Stores what is in `located`: the notifications that may be stored, with the number of their organization. */
const STORE = `
  inserted AS (
    INSERT INTO notifications (organization, id, "timestamp", document_id, location_id, notify_all, size, fingerprint, content)
    SELECT organization, l.id, moment.ms, document_id, location_id, notify_all, octet_length(content), fingerprint, content::json
    FROM located l, moment ORDER BY organization, l.id
    ON CONFLICT (organization, id) DO NOTHING
    RETURNING organization, id, "timestamp"
  ), stored AS MATERIALIZED (
    SELECT l.*, i."timestamp" FROM inserted i JOIN located l USING (organization, id)
  ), outboxed AS (
    INSERT INTO outbox (id, organization, notification_id, trace) SELECT event_id, organization, id, trace FROM stored
    RETURNING seq, id, occurred_at
  ), inserted_recipients AS (
    INSERT INTO recipients (organization, user_id, "timestamp", notification_id, document_id, location_id)
    SELECT s.organization, r.user_id, s."timestamp", s.id, s.document_id, s.location_id
    FROM stored s JOIN unnest($1::int[], $2::text[]) AS r(position, user_id) USING (position)
  )`;
const RESULT = 'SELECT seq, id, occurred_at, moment.ms FROM outboxed, moment';

/** Stores notifications with whatever their organization and their document need, and with the answers of their Idempotency-Keys. */
export const INSERT = {
  name: 'insert-notifications',
  text: `
  WITH ${MOMENT}, input AS MATERIALIZED (
    SELECT t.* FROM moment, unnest(${INPUT}, $15::text[], $16::bytea[])
      AS t(${COLUMNS}, idempotency_key, idempotency_fingerprint)
    WHERE ${IN_TIME}
      AND NOT EXISTS (SELECT FROM idempotency_keys k
                      WHERE k.api_key = t.api_key AND k.operation = '${OPERATION}' AND k.key = t.idempotency_key)
  ), wanted AS MATERIALIZED (
    SELECT DISTINCT api_key, organization_id FROM input
  ), known AS MATERIALIZED (
    SELECT o.id, w.api_key, w.organization_id FROM wanted w JOIN organizations o USING (api_key, organization_id)
  ), created AS (
    INSERT INTO organizations (api_key, organization_id)
    SELECT api_key, organization_id FROM wanted EXCEPT SELECT api_key, organization_id FROM known ORDER BY 1, 2
    ON CONFLICT DO NOTHING
    RETURNING id, api_key, organization_id
  ), located AS MATERIALIZED (
    SELECT * FROM (
      SELECT i.*, ${unlessStored('o.id', 'i.id')} AS organization
      FROM input i JOIN (SELECT * FROM known UNION ALL SELECT * FROM created) o USING (api_key, organization_id) OFFSET 0
    ) looked_up WHERE organization IS NOT NULL
  ), ${STORE}, named_documents AS (
    INSERT INTO documents (organization, document_id)
    SELECT DISTINCT organization, document_id FROM stored ORDER BY 1, 2
    ON CONFLICT DO NOTHING
  ), expired AS (
    DELETE FROM idempotency_keys WHERE (api_key, operation, key) IN (
      SELECT api_key, operation, key FROM idempotency_keys k
      WHERE created_at < now() - interval '${KEEP_KEYS_HOURS} hours'
        AND NOT EXISTS (SELECT FROM input i WHERE i.api_key = k.api_key AND i.idempotency_key = k.key)
      ORDER BY created_at
      LIMIT (SELECT ${EXPIRED_FOR_EACH} * count(*) FROM input WHERE idempotency_key IS NOT NULL)
      FOR UPDATE SKIP LOCKED)
  ), answered AS (
    INSERT INTO idempotency_keys (api_key, operation, key, fingerprint, notification_id)
    SELECT api_key, '${OPERATION}', idempotency_key, idempotency_fingerprint, id
    FROM stored WHERE idempotency_key IS NOT NULL ORDER BY 1, 3
  )
  ${RESULT}`,
};

/**
 * The same for notifications without Idempotency-Key whose organization and document exist. It skips the others, so a wrong guess costs a
 * repetition and nothing else. The subqueries look rows up one by one. OFFSET 0 keeps them from running twice, and from reaching the estimates:
 * with an estimate of one row `stored` would compare every notification with every other.
 */
export const INSERT_KNOWN = {
  name: 'insert-known-notifications',
  text: `
  WITH ${MOMENT}, located AS MATERIALIZED (
    SELECT * FROM (
      SELECT t.*, (SELECT ${unlessStored('o.id', 't.id')} FROM organizations o WHERE o.api_key = t.api_key AND o.organization_id = t.organization_id
                   AND (SELECT true FROM documents d WHERE d.organization = o.id AND d.document_id = t.document_id)) AS organization
      FROM moment, unnest(${INPUT}) AS t(${COLUMNS})
      WHERE ${IN_TIME} OFFSET 0
    ) looked_up WHERE organization IS NOT NULL
  ), ${STORE}
  ${RESULT}`,
};

/** {@link INSERT_KNOWN} without a notification: a connection makes its plan. */
export const INSERT_NONE = { ...INSERT_KNOWN, values: Array.from({ length: 14 }, () => []) };

export const FIND_STORED = {
  name: 'find-stored-notifications',
  text: `
  SELECT t.position, n.fingerprint, k.fingerprint AS answer_fingerprint, k.notification_id AS answer_id
  FROM unnest($1::int[], $2::text[], $3::text[], $4::text[], $5::text[])
    AS t(position, api_key, organization_id, id, idempotency_key)
  LEFT JOIN organizations o ON o.api_key = t.api_key AND o.organization_id = t.organization_id
  LEFT JOIN notifications n ON n.organization = o.id AND n.id = t.id
  LEFT JOIN idempotency_keys k ON k.api_key = t.api_key AND k.operation = '${OPERATION}' AND k.key = t.idempotency_key`,
};

export const KEEP_ANSWERS = `
  INSERT INTO idempotency_keys (api_key, operation, key, fingerprint, notification_id)
  SELECT t.api_key, '${OPERATION}', t.key, t.fingerprint, t.notification_id
  FROM unnest($1::text[], $2::text[], $3::bytea[], $4::text[]) AS t(api_key, key, fingerprint, notification_id) ORDER BY 1, 3
  ON CONFLICT DO NOTHING
  RETURNING api_key, key`;
