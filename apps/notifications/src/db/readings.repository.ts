import { randomUUID } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { EVENT_TYPES } from '@app/contracts/event-types';
import { hasLostRace } from '@app/postgres/errors';
import type { OutboxEvent } from '@app/postgres/outbox/outbox-event';
import { queryPrepared } from '@app/postgres/connections/query-prepared';
import { activeTrace } from '@app/tracing/tracing';
import { MOST_YOUNG, SETTLED, UPDATE_EACH, updateUpTo } from './readings.sql';

interface Tenant {
  apiKey: string;
  organizationId: string;
  /** Epoch milliseconds. Nothing becomes visible more than a second after it. */
  deadline?: number;
}

export interface UpdateEach extends Tenant {
  /** Without repetitions. */
  ids: readonly string[];
  documentId?: string;
  locationId?: string;
  /** Each pair of a notification and a user at most once. */
  pairs: readonly { id: string; userId: string; read: boolean }[];
}

export interface UpdateUpTo extends Tenant {
  userId: string;
  /** Epoch milliseconds. */
  readUpTo: number;
  messageId?: string;
}

export interface UpdatedUpTo {
  /** The moment up to which all is read, less than asked for only when there were too many of the youngest. */
  readUpTo: number;
  /** Rows that were looked at or changed. */
  rows: number;
  /** Documents of the user that were looked into. */
  documents: number;
  event?: OutboxEvent;
}

interface Row {
  updated: string[];
  up_to: string;
  rows: number;
  documents: number;
  seq: string | null;
  occurred_at: Date;
  body: string;
}

@Injectable()
export class ReadingsRepository {
  constructor(private readonly dataSource: DataSource) {}

  /**
   * Marks notifications as read or unread. Whether the users are shown them is not asked.
   *
   * @returns the ids that exist and match the filters; undefined when the deadline has passed or a race was lost, and nothing was done
   */
  async updateEach(update: UpdateEach): Promise<{ updated: string[]; event?: OutboxEvent } | undefined> {
    const { apiKey, organizationId, deadline, ids, documentId, locationId, pairs } = update;
    const found = await this.run(update, UPDATE_EACH, (eventId, trace) => [
      ...[apiKey, organizationId, ids, deadline ?? null, eventId, documentId ?? null, locationId ?? null],
      ...[pairs.map(({ id }) => id), pairs.map(({ userId }) => userId), pairs.map(({ read }) => read), trace],
    ]);
    return found && { updated: found.row.updated, event: found.event };
  }

  /**
   * Marks everything as read that the user is shown now and that has no later timestamp than `readUpTo`. A moment in the future counts as now, and
   * in a redelivery of the message as the time of the first delivery: what was marked as unread since stays unread.
   *
   * @param most notifications marked one by one; other numbers than the default are for tests
   * @returns undefined as above
   */
  async updateUpTo(update: UpdateUpTo, most = MOST_YOUNG): Promise<UpdatedUpTo | undefined> {
    const { apiKey, organizationId, userId, deadline, readUpTo, messageId } = update;
    const [moment] = await queryPrepared<{ settled: string; now: string }>(this.dataSource, SETTLED, [], deadline);
    const found = await this.run(update, updateUpTo(most), (eventId, trace) => [
      ...[apiKey, organizationId, userId, deadline ?? null, eventId, readUpTo],
      ...[moment.settled, trace, moment.now, messageId ?? null],
    ]);
    if (!found) return undefined;
    const { up_to: upTo, rows, documents } = found.row;
    return { readUpTo: Number(upTo), rows, documents, event: found.event };
  }

  private async run(
    { apiKey, organizationId, deadline }: Tenant,
    statement: { name: string; text: string },
    valuesOf: (eventId: string, trace: string | null) => unknown[],
  ): Promise<{ row: Row; event?: OutboxEvent } | undefined> {
    const id = randomUUID();
    const trace = activeTrace();
    try {
      const [row] = await queryPrepared<Row>(this.dataSource, statement, valuesOf(id, trace), deadline);
      if (!row) return undefined;
      const { seq, occurred_at: occurredAt, body } = row;
      if (seq === null) return { row };
      return { row, event: { seq, id, type: EVENT_TYPES.inboxChanged, apiKey, organizationId, occurredAt, data: body, trace } };
    } catch (error) {
      if (hasLostRace(error)) return undefined;
      throw error;
    }
  }
}
