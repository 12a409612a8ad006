import type { PoolClient } from 'pg';
import { EVENT_TYPES } from '@app/contracts/event-types';
import { inTurns } from '@app/postgres/outbox/in-turns.sql';
import type { OutboxEvent, OutboxLimits, TakenEvents } from '@app/postgres/outbox/outbox-event';

/** Rows of a later version wait for a process that knows their type. */
const TYPES = Object.values(EVENT_TYPES);

const COLUMNS = 'ctid AS place, seq, octet_length(data::text) AS size';
const KNOWN = 'type = ANY ($3::text[])';
const OTHERS = `${KNOWN} AND seq NOT IN (SELECT unnest($4::bigint[]))`;

const oldest = (condition: string) => `
    SELECT ${COLUMNS}, seq AS number FROM outbox WHERE ${condition} ORDER BY seq LIMIT $1 FOR UPDATE SKIP LOCKED`;

const take = (locked: string) => `
  WITH locked AS MATERIALIZED (${locked}
  ), sized AS MATERIALIZED (
    SELECT place, sum(size) OVER (ORDER BY number) - size < $2 AS fits FROM locked
  ), taken AS (
    DELETE FROM outbox WHERE ctid = ANY (ARRAY(SELECT place FROM sized WHERE fits)) RETURNING *
  )
  SELECT seq, id, type, api_key AS "apiKey", organization_id AS "organizationId", occurred_at AS "occurredAt", data::text AS data, trace,
         (SELECT count(*) = $1 OR NOT bool_and(fits) FROM sized) AS more
  FROM taken ORDER BY seq`;

/** Planned once, whatever there is then. A ctid stays that of its row, because rows are never updated. Exported for the test of its plan. */
export const TAKE = { name: 'take-events', text: take(oldest(KNOWN)) };

/** The same while some have to wait. */
const TAKE_OTHERS = { name: 'take-other-events', text: take(oldest(OTHERS)) };

/** The same when there are many. Exported for the test of its plan. */
export const TAKE_IN_TURNS = {
  name: 'take-events-in-turns',
  text: take(inTurns({ columns: COLUMNS, subject: 'api_key', key: 'api_key', condition: OTHERS, most: '$1', among: '$5' })),
};

/** Deletes the oldest events that nobody else has locked, but for those with one of these `seq`, and returns them. */
export async function takeEvents(
  client: PoolClient,
  { events: most, bytes, turnsAmong }: OutboxLimits,
  without: readonly string[] = [],
): Promise<TakenEvents> {
  const values = [most, bytes, TYPES];
  const query = turnsAmong
    ? { values: [...values, without, turnsAmong], ...TAKE_IN_TURNS }
    : without.length > 0
      ? { values: [...values, without], ...TAKE_OTHERS }
      : { values, ...TAKE };
  const { rows: events } = await client.query<OutboxEvent & { more: boolean }>(query);
  return { events, more: events[0]?.more ?? false };
}
