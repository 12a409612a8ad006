import { Injectable } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { EVENT_TYPES } from '@app/contracts/event-types';
import type { OutboxEvent } from '@app/postgres/outbox/outbox-event';
import { queryPrepared } from '@app/postgres/connections/query-prepared';
import { MOST_YOUNG, SETTLED, UPDATE_EACH, updateUpTo } from './readings.sql';
import { newEvent, writeEvent, type EventRow } from './write-event';

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

interface Row extends EventRow {
  updated: string[];
  up_to: string;
  rows: number;
  documents: number;
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
    const event = newEvent(EVENT_TYPES.inboxChanged, update);
    const values = [
      ...[apiKey, organizationId, ids, deadline ?? null, event.id, documentId ?? null, locationId ?? null],
      ...[pairs.map(({ id }) => id), pairs.map(({ userId }) => userId), pairs.map(({ read }) => read), event.trace],
    ];
    const found = await writeEvent<Row>(this.dataSource, UPDATE_EACH, values, event, deadline);
    return found && { updated: found.row.updated, event: found.event };
  }

  /**
   * Marks everything as read that the user is shown now and that has no later timestamp than `readUpTo`. A moment in the future counts as now, and
   * in a redelivery of the message as the time of the first delivery: what was marked as unread since stays unread.
   *
   * @param most notifications marked one by one, and documents looked into; other numbers than the defaults are for tests
   * @returns undefined as above
   */
  async updateUpTo(update: UpdateUpTo, most = MOST_YOUNG, mostDocuments?: number): Promise<UpdatedUpTo | undefined> {
    const { apiKey, organizationId, userId, deadline, readUpTo, messageId } = update;
    const [moment] = await queryPrepared<{ settled: string; now: string }>(this.dataSource, SETTLED, [], deadline);
    const event = newEvent(EVENT_TYPES.inboxChanged, update);
    const values = [
      ...[apiKey, organizationId, userId, deadline ?? null, event.id, readUpTo],
      ...[moment.settled, event.trace, moment.now, messageId ?? null],
    ];
    const found = await writeEvent<Row>(this.dataSource, updateUpTo(most, mostDocuments), values, event, deadline);
    if (!found) return undefined;
    const { up_to: upTo, rows, documents } = found.row;
    return { readUpTo: Number(upTo), rows, documents, event: found.event };
  }
}
