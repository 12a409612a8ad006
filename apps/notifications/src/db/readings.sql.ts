import { EVENT_TYPES } from '@app/contracts/event-types';
import { DELETED } from './deleted-notification';
import { firstRun, keptId } from './first-run.sql';
import { isRead, ORGANIZATION, WHO } from './read-state.sql';
import { isOpenToMember, MOST_LOOKED_AT, ONE_BY_ONE, visibleTo } from './visibility.sql';

/** Most notifications that are too young for the mark and that one call marks one by one, and most rows without effect that it deletes. */
export const MOST_YOUNG = 1000;

/** A row unless the deadline in $4, which may be null, has passed. */
const CLOCK = `
  clock AS MATERIALIZED (
    SELECT FROM (SELECT clock_timestamp() AS now) clock
    WHERE $4::bigint IS NULL OR extract(epoch FROM now + current_setting('statement_timeout')::interval) * 1000 <= $4::bigint + 500
  )`;

/** @param trace number of the parameter with the trace context, which may be null */
const outboxed = (users: string, changed: string, trace: number) => `
  outboxed AS (
    INSERT INTO outbox (id, organization, type, body, trace)
    SELECT $5::text, organization, '${EVENT_TYPES.inboxChanged}', json_build_object('organizationId', $2::text, 'userIds', ${users}), $${trace}::text
    FROM (${changed}) changed
    RETURNING seq, occurred_at, body
  )`;

const EVENT = 'outboxed.seq, outboxed.occurred_at, outboxed.body::text AS body';

/**
 * $1 api key, $2 organization, $3 ids, $4 deadline or null, $5 id of the event, $6 document or null, $7 location or null, and the pairs: $8 ids,
 * $9 users, $10 read or unread. $11 trace context or null. Locks rows in the order of the primary key.
 */
export const UPDATE_EACH = {
  name: 'update-readings',
  text: `
  WITH ${CLOCK}, tenant AS MATERIALIZED (
    SELECT o.id AS organization FROM organizations o, clock WHERE o.api_key = $1::text AND o.organization_id = $2::text
  ), found AS MATERIALIZED (
    SELECT n.organization, n.id, n."timestamp" FROM tenant CROSS JOIN unnest($3::text[]) AS wanted(id) CROSS JOIN LATERAL (
      SELECT * FROM notifications n WHERE n.organization = tenant.organization AND n.id = wanted.id OFFSET 0
    ) n
    WHERE n.document_id <> '${DELETED.documentId}' AND ($6::text IS NULL OR n.document_id = $6::text)
      AND ($7::text IS NULL OR n.location_id = $7::text)
  ), pairs AS MATERIALIZED (
    SELECT f.organization, p.user_id, f."timestamp", f.id, p.read,
           coalesce((SELECT m.asked FROM read_marks m WHERE m.organization = f.organization AND m.user_id = p.user_id), -1) AS asked
    FROM found f JOIN unnest($8::text[], $9::text[], $10::boolean[]) AS p(id, user_id, read) ON p.id = f.id
  ), written AS (
    INSERT INTO readings (organization, user_id, "timestamp", notification_id, read, asked)
    SELECT organization, user_id, "timestamp", id, read, asked FROM pairs ORDER BY organization, user_id COLLATE "C", "timestamp", id COLLATE "C"
    ON CONFLICT (organization, user_id, "timestamp", notification_id) DO UPDATE SET read = excluded.read, asked = excluded.asked
  ), ${outboxed('(SELECT json_agg(DISTINCT user_id) FROM pairs)', 'SELECT DISTINCT organization FROM pairs', 11)}
  SELECT ARRAY(SELECT id FROM found) AS updated, ${EVENT} FROM clock LEFT JOIN outboxed ON true`,
};

/**
 * The moment before which everything that will ever be stored is visible, and now, both in epoch milliseconds. A notification has the time at
 * which its statement ran, and is visible after its commit. A statement that has begun and not committed has a transaction in this view, also
 * while its commit waits for a standby. The view includes the statement itself, so what begins later is later than the result. A session with
 * `track_activities` off shows no transaction, and then nothing is settled. It may be older than the setting of this one.
 */
export const SETTLED = {
  name: 'settled',
  text: `
  SELECT CASE WHEN bool_or(state = 'disabled') THEN 0
           ELSE floor(extract(epoch FROM least(statement_timestamp(), min(xact_start))) * 1000)::bigint - 1 END AS settled,
         (extract(epoch FROM statement_timestamp()) * 1000)::bigint AS now
  FROM pg_stat_activity WHERE usename = current_user AND datname = current_database()`,
};

/** The moment that counts: now instead of one in the future, and in a redelivery the `now` of the first delivery. */
const UP_TO = `
  ${firstRun('update', '$10', '$9::bigint', 'FROM clock WHERE $10::text IS NOT NULL AND $6::bigint > $9::bigint')},
  counts AS MATERIALIZED (
    SELECT least($6::bigint, (SELECT moment FROM run),
      coalesce((SELECT moment FROM deletions WHERE api_key = $1::text AND message_id = ${keptId('update', '$10')}), $9::bigint)) AS up_to
  )`;
const ASKED = '(SELECT up_to FROM counts)';

/**
 * $1 api key, $2 organization, $3 user, $4 deadline or null, $5 id of the event, $6 the moment that is asked for, $7 the moment that is settled,
 * $8 trace context or null, $9 now, $10 message id or null.
 * Up to $7 the mark says that all is read. Anything younger is marked one by one, because more may become visible there. With more than
 * `most` of them the oldest are marked, and the moment before the first that is left is what counts.
 *
 * The moment of the first run is kept in the same commit: after one of its own, which may wait for a standby, more would be visible.
 *
 * A moment that is not later than that of an earlier call changes nothing, so that a redelivery does not undo a later "unread".
 */
export const updateUpTo = (most: number, documents = MOST_LOOKED_AT) => {
  const young = (table: string, id: string, conditions: string) => `
    SELECT t."timestamp", t.${id} AS id FROM ${table} t
    WHERE t.organization = ${ORGANIZATION} ${conditions}
      AND t."timestamp" > (SELECT settled FROM known) AND t."timestamp" <= ${ASKED} AND NOT ${isRead('t', id)}
    ORDER BY t."timestamp", t.${id} LIMIT ${most + 1}`;
  return {
    name: most === MOST_YOUNG && documents === MOST_LOOKED_AT ? 'mark-up-to' : `mark-up-to ${most} ${documents}`,
    text: `
  WITH ${CLOCK}, ${UP_TO}, ${WHO}, ${visibleTo('$3', ORGANIZATION, undefined, documents)}, known AS MATERIALIZED (
    SELECT greatest(mark, least(${ASKED}, $7::bigint)) AS settled FROM who
  ), young AS MATERIALIZED (
    (${young('recipients', 'notification_id', 'AND t.user_id = $3::text')})
    UNION (${young('notifications', 'id', `AND t.notify_all AND ${ONE_BY_ONE} AND ${isOpenToMember('t.document_id', ORGANIZATION, '$3::text')}`)})
    UNION (SELECT k.* FROM visible v CROSS JOIN LATERAL (${young('notifications', 'id', 'AND t.notify_all AND t.document_id = v.document_id')}) k
      ORDER BY 1, 2 LIMIT ${most + 1})
    ORDER BY 1, 2 LIMIT ${most + 1}
  ), counted AS MATERIALIZED (
    SELECT coalesce((SELECT "timestamp" - 1 FROM young ORDER BY "timestamp", id OFFSET ${most} LIMIT 1), ${ASKED}) AS up_to
  ), marked AS (
    INSERT INTO read_marks AS m (organization, user_id, read_up_to, asked)
    SELECT organization, $3::text, least(${ASKED}, $7::bigint), up_to FROM who, counted, clock
    ON CONFLICT (organization, user_id) DO UPDATE SET
      read_up_to = greatest(m.read_up_to, excluded.read_up_to), asked = greatest(m.asked, excluded.asked)
    WHERE m.asked < ${ASKED}
    RETURNING organization, asked
  ), written AS (
    INSERT INTO readings (organization, user_id, "timestamp", notification_id, read, asked)
    SELECT m.organization, $3::text, y."timestamp", y.id, true, m.asked
    FROM marked m, (SELECT * FROM young ORDER BY "timestamp", id LIMIT ${most}) y ORDER BY y."timestamp", y.id
    ON CONFLICT (organization, user_id, "timestamp", notification_id) DO UPDATE SET read = true, asked = excluded.asked
  ), voided AS (
    DELETE FROM readings WHERE ctid = ANY (ARRAY(
      SELECT r.ctid FROM marked m CROSS JOIN LATERAL (
        SELECT r.ctid FROM readings r
        WHERE r.organization = m.organization AND r.user_id = $3::text AND r."timestamp" <= (SELECT settled FROM known)
          AND (r.read OR r.asked <> m.asked)
        ORDER BY r."timestamp" LIMIT ${most} FOR UPDATE SKIP LOCKED
      ) r))
    RETURNING 1
  ), ${outboxed('json_build_array($3::text)', 'SELECT organization FROM marked', 8)}
  SELECT CASE WHEN EXISTS (SELECT FROM marked) THEN up_to ELSE ${ASKED} END AS up_to,
    ((SELECT count(*) FROM young) + (SELECT count(*) FROM voided))::int AS rows, (SELECT count(*)::int FROM open_to_user WHERE matters) AS documents, ${EVENT}
  FROM clock CROSS JOIN counted LEFT JOIN outboxed ON true`,
  };
};
