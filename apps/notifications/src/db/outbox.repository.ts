import type { PoolClient } from 'pg';
import { EVENT_TYPES } from '@app/contracts/event-types';
import { EVENT_MEMORY_MS } from '@app/postgres/outbox/event-memory';
import { inTurns } from '@app/postgres/outbox/in-turns.sql';
import type { OutboxLimits, TakenEvents } from '@app/postgres/outbox/outbox-event';
import type { NotificationContent } from './notification-content';
import { DELETED } from './deleted-notification';
import { notificationAdded, type AddedNotification } from './notification-added';

/** Rows of a later version wait for a process that knows their type. */
const TYPES = Object.values(EVENT_TYPES);

/**
 * Longest publication of a batch, in milliseconds: see EventPublisher. A process may begin to publish an event from memory until others may take
 * its row. So the event of a deletion is left in the table for that much longer: no event of a notification follows that of its deletion.
 */
const LONGEST_PUBLICATION_MS = 4000;

/**
 * How long after a notification is stored a process may be publishing its event, in milliseconds. Its row does not say: another process may have
 * published and deleted that meanwhile.
 */
export const UNDER_WAY_MS = EVENT_MEMORY_MS + LONGEST_PUBLICATION_MS + 1000;

const COLUMNS = 'ctid AS place, *, octet_length(body::text) AS body_size';
const KEY = 'coalesce(api_key, (SELECT o.api_key FROM organizations o WHERE o.id = organization))';
const OLD_ENOUGH = `type = ANY ($3::text[]) AND occurred_at <= statement_timestamp() - $4 * interval '1 ms'
      AND (type <> '${EVENT_TYPES.notificationDeleted}' OR occurred_at <= statement_timestamp() - ($4 + ${LONGEST_PUBLICATION_MS}) * interval '1 ms')`;
const OTHERS = `${OLD_ENOUGH} AND seq NOT IN (SELECT unnest($5::bigint[]))`;

const oldest = (condition: string) => `
    SELECT ${COLUMNS}, seq AS number FROM outbox WHERE ${condition} ORDER BY seq LIMIT $1 FOR UPDATE SKIP LOCKED`;

const take = (locked: string) => `
  WITH locked AS MATERIALIZED (${locked}
  ), outboxed AS MATERIALIZED (
    SELECT l.place, l.seq, l.id AS event_id, l.type, l.body, l.trace, l.occurred_at,
           coalesce(o.api_key, l.api_key) AS api_key, coalesce(o.organization_id, l.api_key) AS organization_id,
           n.id, n."timestamp", n.document_id, n.location_id, n.notify_all, n.content,
           coalesce(sum(coalesce(l.body_size, n.size)) OVER (ORDER BY l.number) - coalesce(l.body_size, n.size), 0) < $2 AS fits
    FROM locked l
    LEFT JOIN LATERAL (SELECT * FROM organizations o WHERE o.id = l.organization OFFSET 0) o ON true
    LEFT JOIN LATERAL (
      SELECT * FROM notifications n WHERE n.organization = l.organization AND n.id = l.notification_id AND n.document_id <> '${DELETED.documentId}' OFFSET 0
    ) n ON true
  ), taken AS (
    DELETE FROM outbox WHERE ctid = ANY (ARRAY(SELECT place FROM outboxed WHERE fits))
  )
  SELECT seq, event_id, type, body::text AS body, trace, occurred_at, api_key, organization_id,
         id, "timestamp", document_id, location_id, notify_all, content,
         api_key IS NOT NULL AND (body IS NOT NULL OR id IS NOT NULL) AS is_there,
         (SELECT count(*) = $1 OR NOT bool_and(fits) FROM outboxed) AS more
  FROM outboxed WHERE fits ORDER BY seq`;

/**
 * An event has a body of its own, or is made of its notification, which changes only when it is deleted or a user is erased. The statement is
 * planned once, for any number of rows: OFFSET 0 keeps a lookup one, and a ctid stays that of its row, because rows are never updated. Exported
 * for the test of its plan.
 */
export const TAKE = { name: 'take-events', text: take(oldest(OLD_ENOUGH)) };

/** The same while some have to wait. */
const TAKE_OTHERS = { name: 'take-other-events', text: take(oldest(OTHERS)) };

/** The same when there are many. Exported for the test of its plan. */
export const TAKE_IN_TURNS = {
  name: 'take-events-in-turns',
  text: take(
    inTurns({ columns: COLUMNS, subject: 'organization, api_key', key: KEY, condition: OTHERS, most: '$1', among: '$6' }),
  ),
};

interface Row {
  seq: string;
  event_id: string;
  type: string;
  body: string | null;
  trace: string | null;
  occurred_at: Date;
  api_key: string;
  organization_id: string;
  id: string;
  timestamp: string;
  document_id: string;
  location_id: string | null;
  notify_all: boolean;
  content: NotificationContent;
  /** Whether there is something to publish. Without it the other fields of a notification are null. */
  is_there: boolean;
  more: boolean;
}

/**
 * Deletes the oldest events that are old enough and that no other process has locked, but for those with one of these `seq`, and returns them. Events of
 * notifications that are gone or deleted are dropped.
 */
export async function takeEvents(
  client: PoolClient,
  { events: most, bytes, ageMs, turnsAmong }: OutboxLimits,
  without: readonly string[] = [],
): Promise<TakenEvents> {
  const values = [most, bytes, TYPES, ageMs];
  const query = turnsAmong
    ? { values: [...values, without, turnsAmong], ...TAKE_IN_TURNS }
    : without.length > 0
      ? { values: [...values, without], ...TAKE_OTHERS }
      : { values, ...TAKE };
  const { rows } = await client.query<Row>(query);
  const events = rows
    .filter((row) => row.is_there)
    .map((row) => ({
      seq: row.seq,
      id: row.event_id,
      type: row.type,
      apiKey: row.api_key,
      organizationId: row.organization_id,
      occurredAt: row.occurred_at,
      data: row.body ?? notificationAdded(toNotification(row), row.timestamp),
      trace: row.trace,
    }));
  const dropped = rows.filter((row) => !row.is_there).map(({ seq }) => seq);
  return { events, dropped, more: rows[0]?.more ?? false };
}

const toNotification = (row: Row): AddedNotification => ({
  id: row.id,
  organizationId: row.organization_id,
  documentId: row.document_id,
  locationId: row.location_id,
  notifyAll: row.notify_all,
  content: row.content,
});
