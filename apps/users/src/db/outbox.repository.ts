import type { PoolClient } from 'pg';
import { EVENT_TYPES } from '@app/contracts/event-types';
import type { OutboxEvent, OutboxLimits } from '@app/postgres/outbox/outbox-event';

/** Rows of a later version wait for a process that knows their type. */
const TYPES = Object.values(EVENT_TYPES);

const take = (condition = '') => `
  WITH locked AS MATERIALIZED (
    SELECT ctid AS place, seq, octet_length(data::text) AS size FROM outbox
    WHERE type = ANY ($3::text[]) ${condition} ORDER BY seq LIMIT $1 FOR UPDATE SKIP LOCKED
  ), chosen AS (
    SELECT place FROM (SELECT place, sum(size) OVER (ORDER BY seq) - size AS before FROM locked) sized WHERE before < $2
  ), taken AS (
    DELETE FROM outbox WHERE ctid = ANY (ARRAY(SELECT place FROM chosen)) RETURNING *
  )
  SELECT seq, id, type, api_key AS "apiKey", organization_id AS "organizationId", occurred_at AS "occurredAt", data::text AS data, trace
  FROM taken ORDER BY seq`;

/** Planned once, whatever there is then. A ctid stays that of its row, because rows are never updated. Exported for the test of its plan. */
export const TAKE = { name: 'take-events', text: take() };

/** The same while some have to wait. */
const TAKE_OTHERS = { name: 'take-other-events', text: take('AND seq NOT IN (SELECT unnest($4::bigint[]))') };

/** Deletes the oldest events that nobody else has locked, but for those with one of these `seq`, and returns them. */
export async function takeEvents(
  client: PoolClient,
  { events, bytes }: OutboxLimits,
  without: readonly string[] = [],
): Promise<OutboxEvent[]> {
  const values = [events, bytes, TYPES];
  const query = without.length > 0 ? { values: [...values, without], ...TAKE_OTHERS } : { values, ...TAKE };
  return (await client.query<OutboxEvent>(query)).rows;
}
