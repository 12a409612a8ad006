import type { PoolClient } from 'pg';
import { EVENT_TYPES } from '@app/contracts/event-types';
import { EVENT_MEMORY_MS } from '@app/postgres/outbox/event-memory';
import type { OutboxEvent, OutboxLimits } from '@app/postgres/outbox/outbox-event';
import type { NotificationContent } from './entities/notification.entity';
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

const take = (condition = '') => `
  WITH locked AS MATERIALIZED (
    SELECT ctid AS place, *, octet_length(body::text) AS body_size FROM outbox
    WHERE type = ANY ($3::text[]) AND occurred_at <= statement_timestamp() - $4 * interval '1 ms'
      AND (type <> '${EVENT_TYPES.notificationDeleted}' OR occurred_at <= statement_timestamp() - ($4 + ${LONGEST_PUBLICATION_MS}) * interval '1 ms')
      ${condition}
    ORDER BY seq LIMIT $1 FOR UPDATE SKIP LOCKED
  ), outboxed AS MATERIALIZED (
    SELECT l.place, l.seq, l.id AS event_id, l.type, l.body, l.trace, l.occurred_at,
           coalesce(o.api_key, l.api_key) AS api_key, coalesce(o.organization_id, l.api_key) AS organization_id,
           n.id, n."timestamp", n.document_id, n.location_id, n.notify_all, n.content,
           coalesce(sum(coalesce(l.body_size, n.size)) OVER (ORDER BY l.seq) - coalesce(l.body_size, n.size), 0) AS before
    FROM locked l
    LEFT JOIN LATERAL (SELECT * FROM organizations o WHERE o.id = l.organization OFFSET 0) o ON true
    LEFT JOIN LATERAL (
      SELECT * FROM notifications n WHERE n.organization = l.organization AND n.id = l.notification_id AND n.document_id <> '${DELETED.documentId}' OFFSET 0
    ) n ON true
  ), taken AS (
    DELETE FROM outbox WHERE ctid = ANY (ARRAY(SELECT place FROM outboxed WHERE before < $2))
  )
  SELECT seq, event_id, type, body::text AS body, trace, occurred_at, api_key, organization_id,
         id, "timestamp", document_id, location_id, notify_all, content
  FROM outboxed WHERE before < $2 AND (body IS NOT NULL OR id IS NOT NULL) AND api_key IS NOT NULL ORDER BY seq`;

/**
 * An event has a body of its own, or is made of its notification, which changes only when it is deleted or a user is erased. The statement is
 * planned once, for any number of rows: OFFSET 0 keeps a lookup one, and a ctid stays that of its row, because rows are never updated. Exported
 * for the test of its plan.
 */
export const TAKE = { name: 'take-events', text: take() };

/** The same while some have to wait. */
const TAKE_OTHERS = { name: 'take-other-events', text: take('AND seq NOT IN (SELECT unnest($5::bigint[]))') };

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
}

/**
 * Deletes the oldest events that are old enough and that no other process has locked, but for those with one of these `seq`, and returns them. Events of
 * notifications that are gone or deleted are dropped.
 */
export async function takeEvents(
  client: PoolClient,
  { events, bytes, ageMs }: OutboxLimits,
  without: readonly string[] = [],
): Promise<OutboxEvent[]> {
  const values = [events, bytes, TYPES, ageMs];
  const query = without.length > 0 ? { values: [...values, without], ...TAKE_OTHERS } : { values, ...TAKE };
  const { rows } = await client.query<Row>(query);
  return rows.map((row) => ({
    seq: row.seq,
    id: row.event_id,
    type: row.type,
    apiKey: row.api_key,
    organizationId: row.organization_id,
    occurredAt: row.occurred_at,
    data: row.body ?? notificationAdded(toNotification(row), row.timestamp),
    trace: row.trace,
  }));
}

const toNotification = (row: Row): AddedNotification => ({
  id: row.id,
  organizationId: row.organization_id,
  documentId: row.document_id,
  locationId: row.location_id,
  notifyAll: row.notify_all,
  content: row.content,
});
