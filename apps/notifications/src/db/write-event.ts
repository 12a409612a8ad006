import { randomUUID } from 'node:crypto';
import type { DataSource } from 'typeorm';
import type { EventType } from '@app/contracts/event-types';
import { hasLostRace } from '@app/postgres/errors';
import type { OutboxEvent } from '@app/postgres/outbox/outbox-event';
import { queryPrepared, type PreparedStatement } from '@app/postgres/connections/query-prepared';
import { activeTrace } from '@app/tracing/tracing';

type NewEvent = Omit<OutboxEvent, 'seq' | 'occurredAt' | 'data'>;

/** The row that a statement returns of the event that it has written; `seq` is null when it has written none. */
export interface EventRow {
  seq: string | null;
  occurred_at: Date;
  body: string;
}

/** The part of an event that is known before its statement runs. */
export const newEvent = (type: EventType, { apiKey, organizationId }: { apiKey: string; organizationId: string }) =>
  ({ id: randomUUID(), type, apiKey, organizationId, trace: activeTrace() }) satisfies NewEvent;

/**
 * Runs a statement that returns one row, and may write the event.
 *
 * @returns undefined when the deadline has passed or a race was lost. Then nothing is changed.
 */
export async function writeEvent<Row extends EventRow>(
  dataSource: DataSource,
  statement: PreparedStatement,
  values: unknown[],
  event: NewEvent,
  deadline?: number,
): Promise<{ row: Row; event?: OutboxEvent } | undefined> {
  try {
    const [row] = await queryPrepared<Row>(dataSource, statement, values, deadline);
    if (!row) return undefined;
    const { seq, occurred_at: occurredAt, body: data } = row;
    return seq === null ? { row } : { row, event: { ...event, seq, occurredAt, data } };
  } catch (error) {
    if (hasLostRace(error)) return undefined;
    throw error;
  }
}
