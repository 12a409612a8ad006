import type { PoolClient } from 'pg';
import type { OutboxEvent, OutboxLimits } from '@app/postgres/outbox';

/** Types of the events that statements of this service write. */
export const EVENTS = {
  organizationCreated: 'organization.created.v1',
  userAdded: 'user.added.v1',
  documentChanged: 'document.changed.v1',
  apiKeyRevoked: 'api-key.revoked.v1',
} as const;

/** NOTIFY on it wakes the relays of the running service: for whoever writes events and has no relay. */
export const WRITTEN_ELSEWHERE = 'users_outbox_written_elsewhere';

const take = (which = '') => `
  WITH locked AS MATERIALIZED (
    SELECT ctid AS place, seq, octet_length(data::text) AS size FROM outbox ${which} ORDER BY seq LIMIT $1 FOR UPDATE SKIP LOCKED
  ), chosen AS (
    SELECT place FROM (SELECT place, sum(size) OVER (ORDER BY seq) - size AS before FROM locked) sized WHERE before < $2
  ), taken AS (
    DELETE FROM outbox WHERE ctid = ANY (ARRAY(SELECT place FROM chosen)) RETURNING *
  )
  SELECT seq, id, type, api_key AS "apiKey", organization_id AS "organizationId", occurred_at AS "occurredAt", data::text AS data
  FROM taken ORDER BY seq`;

/** Planned once, whatever there is then. A ctid stays that of its row, because rows are never updated. Exported for the test of its plan. */
export const TAKE = { name: 'take-events', text: take() };

/** The same while some have to wait. */
const TAKE_OTHERS = { name: 'take-other-events', text: take('WHERE seq NOT IN (SELECT unnest($3::bigint[]))') };

/** Deletes the oldest events that nobody else has locked, but for those with one of these `seq`, and returns them. */
export async function takeEvents(
  client: PoolClient,
  { events, bytes }: OutboxLimits,
  without: readonly string[] = [],
): Promise<OutboxEvent[]> {
  const query = without.length > 0 ? { values: [events, bytes, without], ...TAKE_OTHERS } : { values: [events, bytes], ...TAKE };
  return (await client.query<OutboxEvent>(query)).rows;
}
