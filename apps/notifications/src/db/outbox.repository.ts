import type { PoolClient } from 'pg';
import type { OutboxEvent, OutboxLimits } from '@app/postgres/outbox';

const TYPE = 'notification.added.v1';

/**
 * A notification does not change: its event is made of its row when it is published. Notifications are looked up one by one (OFFSET 0 keeps
 * it so): before the tables have statistics a join would read all of them.
 */
const TAKE = {
  name: 'take-events',
  text: `
  WITH locked AS MATERIALIZED (
    SELECT e.seq, (SELECT n.size FROM notifications n WHERE n.organization = e.organization AND n.id = e.notification_id) AS size
    FROM outbox e ORDER BY e.seq LIMIT $1 FOR UPDATE OF e SKIP LOCKED
  ), chosen AS (
    SELECT seq FROM (SELECT seq, coalesce(sum(size) OVER (ORDER BY seq) - size, 0) AS before FROM locked) sized WHERE before < $2
  ), taken AS (
    DELETE FROM outbox e USING chosen c WHERE e.seq = c.seq RETURNING e.*
  )
  SELECT t.id AS event_id, t.occurred_at, o.api_key, o.organization_id, n.id, n."timestamp", n.document_id, n.location_id, n.notify_all,
         n.content::text AS content
  FROM taken t
  JOIN organizations o ON o.id = t.organization
  CROSS JOIN LATERAL (
    SELECT * FROM notifications n WHERE n.organization = t.organization AND n.id = t.notification_id OFFSET 0
  ) n
  ORDER BY t.seq`,
};

interface Row {
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

/** Deletes the oldest events that nobody else has locked, and returns them. Those of notifications that are gone are dropped. */
export async function takeEvents(client: PoolClient, { events, bytes }: OutboxLimits): Promise<OutboxEvent[]> {
  const { rows } = await client.query<Row>({ ...TAKE, values: [events, bytes] });
  return rows.map((row) => ({
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
