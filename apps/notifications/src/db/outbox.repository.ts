import type { PoolClient } from 'pg';
import type { OutboxEvent, OutboxLimits } from '@app/postgres/outbox';

const TYPE = 'notification.added.v1';

const take = (which = '') => `
  WITH locked AS MATERIALIZED (
    SELECT ctid AS place, * FROM outbox ${which} ORDER BY seq LIMIT $1 FOR UPDATE SKIP LOCKED
  ), outboxed AS MATERIALIZED (
    SELECT l.place, l.seq, l.id AS event_id, l.occurred_at, o.api_key, o.organization_id,
           n.id, n."timestamp", n.document_id, n.location_id, n.notify_all, n.content,
           coalesce(sum(n.size) OVER (ORDER BY l.seq) - n.size, 0) AS before
    FROM locked l
    LEFT JOIN LATERAL (SELECT * FROM organizations o WHERE o.id = l.organization OFFSET 0) o ON true
    LEFT JOIN LATERAL (
      SELECT * FROM notifications n WHERE n.organization = l.organization AND n.id = l.notification_id OFFSET 0
    ) n ON true
  ), taken AS (
    DELETE FROM outbox WHERE ctid = ANY (ARRAY(SELECT place FROM outboxed WHERE before < $2))
  )
  SELECT seq, event_id, occurred_at, api_key, organization_id, id, "timestamp", document_id, location_id, notify_all, content::text AS content
  FROM outboxed WHERE before < $2 AND id IS NOT NULL AND api_key IS NOT NULL ORDER BY seq`;

/**
 * A notification does not change: its event is made of its row when it is published. Planned once, whatever there is then: OFFSET 0 keeps a
 * lookup one, and a ctid stays that of its row, because rows are never updated. Exported for the test of its plan.
 */
export const TAKE = { name: 'take-events', text: take() };

/** The same while some have to wait. */
const TAKE_OTHERS = { name: 'take-other-events', text: take('WHERE seq NOT IN (SELECT unnest($3::bigint[]))') };

interface Row {
  seq: string;
  event_id: string;
  occurred_at: Date;
  api_key: string;
  organization_id: string;
  id: string;
  timestamp: string;
  document_id: string;
  location_id: string | null;
  notify_all: boolean;
  content: string;
}

/**
 * Deletes the oldest events that nobody else has locked, but for those with one of these `seq`, and returns them. Those of notifications that
 * are gone are dropped.
 */
export async function takeEvents(
  client: PoolClient,
  { events, bytes }: OutboxLimits,
  without: readonly string[] = [],
): Promise<OutboxEvent[]> {
  const query = without.length > 0 ? { values: [events, bytes, without], ...TAKE_OTHERS } : { values: [events, bytes], ...TAKE };
  const { rows } = await client.query<Row>(query);
  return rows.map((row) => ({
    seq: row.seq,
    id: row.event_id,
    type: TYPE,
    apiKey: row.api_key,
    organizationId: row.organization_id,
    occurredAt: row.occurred_at,
    data: dataOf(row),
  }));
}

/** The content is a JSON object of several members: it is put behind the others as it is. */
function dataOf(row: Row): string {
  const head = JSON.stringify({
    notificationId: row.id,
    organizationId: row.organization_id,
    documentId: row.document_id,
    ...(row.location_id !== null && { locationId: row.location_id }),
    notifyAll: row.notify_all,
    timestamp: Number(row.timestamp),
    version: 1,
  });
  return `${head.slice(0, -1)},${row.content.slice(1)}`;
}
