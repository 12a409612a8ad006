import { EVENT_TYPES } from '@app/contracts/event-types';
import { DELETED } from './deleted-notification';
import { firstRun } from './first-run.sql';
import { UNDER_WAY_MS } from './outbox.repository';
import { recipientsOf } from './recipients-of.sql';

/** Most notifications, users named in them, and bytes of content for one statement. The first notification may have more. */
export const MOST_DELETED = 256;
const MOST_RECIPIENTS = 10_000;
const MOST_BYTES = 8 * 1024 * 1024;
/** Most read states looked at by one statement. Others have no effect any more, and go when their users mark all as read or with the retention. */
export const MOST_READINGS = 10_000;
/**
 * Most waiting events that are looked through for those of the notifications: each add would pay for an index. With as many, as when a broker has
 * been away, one of them may be there, and the event of the deletion is left to the table.
 */
export const MOST_EVENTS = 4000;

/**
 * $1 api key, $2 organization, $3 message id, $4 deadline or null, $5 moment of the page token or null, $6 id of the event, $7 most notifications.
 * Without a row in `run` the deadline has passed, and nothing is found.
 */
const RUN = `
  clock AS MATERIALIZED (
    SELECT (extract(epoch FROM now) * 1000)::bigint AS ms,
           extract(epoch FROM now + current_setting('statement_timeout')::interval) * 1000 AS latest_end
    FROM (SELECT clock_timestamp() AS now) clock
  ), ${firstRun('delete', '$3', 'least($5::bigint, ms)', 'FROM clock WHERE $4::bigint IS NULL OR latest_end <= $4::bigint + 500')}, tenant AS MATERIALIZED (
    SELECT o.id AS organization, run.moment FROM organizations o, run WHERE o.api_key = $1::text AND o.organization_id = $2::text
  )`;

/**
 * Deletes what is in `candidates`, which are the oldest that match. They were found without a lock, so each is locked and looked at again, in the
 * order of the primary key, as every statement does that deletes notifications.
 *
 * The row stays, without its content, and keeps the id taken: after a DELETE an insert that waits for the row would store the notification again.
 * The subquery with OFFSET 0 looks rows up one by one, and ctids replace joins, as in the statement of the retention.
 * Readings are found by their time alone: with the id PostgreSQL 18 would search the primary key for each user of the organization. All notifications
 * of a batch have one time. A reading that is being written is left: an update locks several in another order.
 *
 * @param matching condition on a notification `n` whose row is locked. No index may fit it: a planner that expects few rows of a location would read
 *   all of them to find those with the ids
 * @param trace number of the parameter with the trace context, which may be null
 */
const deleteCandidates = (matching: string, trace: number) => `
  sized AS MATERIALIZED (
    SELECT *, row_number() OVER oldest AS number, sum(size) OVER oldest AS bytes FROM candidates
    WINDOW oldest AS (ORDER BY "timestamp", id ROWS UNBOUNDED PRECEDING)
  ), counted AS MATERIALIZED (
    SELECT organization, id, number, many, sum(many) OVER (ORDER BY number) AS recipients FROM (
      SELECT *, json_array_length(content -> 'notifyUsers') AS many FROM sized
      WHERE number = 1 OR (number <= $7::int AND bytes <= ${MOST_BYTES}) OFFSET 0
    ) sized
  ), chosen AS MATERIALIZED (
    SELECT id, many FROM counted WHERE number = 1 OR recipients <= ${MOST_RECIPIENTS}
  ), locked AS MATERIALIZED (
    SELECT n.organization, n.id, n."timestamp", n.content FROM notifications n
    WHERE n.organization = (SELECT organization FROM tenant) AND n.id = ANY (ARRAY(SELECT id FROM chosen)) AND ${matching}
    ORDER BY n.organization, n.id FOR UPDATE
  ), ${recipientsOf('locked', 'chosen')}, recipients_deleted AS (
    DELETE FROM recipients WHERE ctid = ANY (ARRAY(SELECT ctid FROM recipients_found))
  ), readings_deleted AS (
    DELETE FROM readings WHERE ctid = ANY (ARRAY(
      SELECT ctid FROM readings WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM (
          SELECT r.* FROM (SELECT DISTINCT organization, "timestamp" FROM locked) l CROSS JOIN LATERAL (
            SELECT ctid, notification_id FROM readings r WHERE r.organization = l.organization AND r."timestamp" = l."timestamp" OFFSET 0
          ) r LIMIT ${MOST_READINGS}
        ) looked_at WHERE notification_id = ANY (ARRAY(SELECT id FROM locked)))) FOR UPDATE SKIP LOCKED))
  ), deleted AS (
    UPDATE notifications n SET document_id = '${DELETED.documentId}', location_id = NULL, notify_all = false,
      size = ${DELETED.content.length}, content = '${DELETED.content}', "timestamp" = clock.ms
    FROM clock WHERE n.organization = (SELECT organization FROM tenant) AND n.id = ANY (ARRAY(SELECT id FROM locked))
  ), unpublished AS MATERIALIZED (
    SELECT EXISTS (SELECT FROM locked l, clock WHERE l."timestamp" > clock.ms - ${UNDER_WAY_MS}) OR (
      SELECT count(*) = ${MOST_EVENTS}
        OR coalesce(bool_or(organization = (SELECT organization FROM tenant) AND notification_id IN (SELECT id FROM locked)), false)
      FROM (SELECT organization, notification_id FROM outbox LIMIT ${MOST_EVENTS}) o
    ) AS found
  ), outboxed AS (
    INSERT INTO outbox (id, organization, type, body, trace)
    SELECT $6::text, organization, '${EVENT_TYPES.notificationDeleted}',
           json_build_object('organizationId', $2::text, 'notificationIds', json_agg(id), 'version', 1), $${trace}::text
    FROM locked GROUP BY organization
    RETURNING seq, occurred_at, body
  )`;

const result = (lists: string) => `
  SELECT run.moment, ARRAY(SELECT id FROM locked) AS deleted, ${lists},
         (SELECT coalesce(sum(many), 0) FROM named)::int AS recipients,
         outboxed.seq, outboxed.occurred_at, outboxed.body::text AS body, unpublished.found AS unpublished
  FROM run CROSS JOIN unpublished LEFT JOIN outboxed ON true`;

/** @param columns those that a notification must have the values of $8 and following in; the trace context, which may be null, comes after them */
const deletePage = (name: string, columns: readonly string[]) => {
  const equal = (operator: string) => columns.map((column, place) => `n.${column} ${operator} $${8 + place}::text`).join(' AND ');
  const trace = 8 + columns.length;
  return {
    name,
    text: `
  WITH ${RUN}, candidates AS MATERIALIZED (
    SELECT n.organization, n.id, n."timestamp", n.size, n.content FROM tenant CROSS JOIN LATERAL (
      SELECT * FROM notifications n
      WHERE n.organization = tenant.organization AND ${equal('=')} AND n."timestamp" <= tenant.moment
      ORDER BY n."timestamp", n.id LIMIT ${MOST_DELETED + 1}
    ) n
  ), ${deleteCandidates(equal('IS NOT DISTINCT FROM'), trace)}
  ${result(`(SELECT count(*) FROM candidates) > (SELECT count(*) FROM chosen) AS more`)}`,
  };
};

/** $8 is the document, $9 the trace context or null. */
export const DELETE_BY_DOCUMENT = deletePage('delete-notifications-by-document', ['document_id']);

/** $8 is the document, $9 the location, $10 the trace context or null. */
export const DELETE_BY_LOCATION = deletePage('delete-notifications-by-location', ['document_id', 'location_id']);

const FILTERED = `($8::text IS NULL OR n.document_id = $8::text) AND ($9::text IS NULL OR n.location_id = $9::text)`;

/** $8 is the document or null, $9 the location or null, $10 the ids, without repetitions, $11 the trace context or null. */
export const DELETE_BY_ID = {
  name: 'delete-notifications-by-id',
  text: `
  WITH ${RUN}, found AS MATERIALIZED (
    SELECT n.organization, n.id, n."timestamp", n.size, n.content, n.document_id = '${DELETED.documentId}' AS is_deleted,
           ${FILTERED} AND n."timestamp" <= tenant.moment AS is_matching
    FROM tenant CROSS JOIN unnest($10::text[]) AS wanted(id) CROSS JOIN LATERAL (
      SELECT * FROM notifications n WHERE n.organization = tenant.organization AND n.id = wanted.id OFFSET 0
    ) n
  ), candidates AS MATERIALIZED (
    SELECT organization, id, "timestamp", size, content FROM found WHERE is_matching AND NOT is_deleted
  ), ${deleteCandidates(`n.document_id <> '${DELETED.documentId}' AND ${FILTERED}`, 11)}
  ${result(`ARRAY(SELECT id FROM found WHERE is_deleted) AS deleted_before, ARRAY(SELECT id FROM candidates) AS candidates,
    ARRAY(SELECT id FROM chosen) AS chosen`)}`,
};
