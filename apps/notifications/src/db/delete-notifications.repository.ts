import { Injectable } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { EVENT_TYPES } from '@app/contracts/event-types';
import type { OutboxEvent } from '@app/postgres/outbox/outbox-event';
import { DELETE_BY_DOCUMENT, DELETE_BY_ID, DELETE_BY_LOCATION, MOST_DELETED } from './delete-notifications.sql';
import { newEvent, writeEvent, type EventRow } from './write-event';

export interface Deletion {
  apiKey: string;
  organizationId: string;
  /** A command with the same message id goes on with the moment of its first run. */
  messageId: string;
  /** Epoch milliseconds: later notifications stay. Absent: now, by the clock of the database. */
  moment?: number;
  documentId?: string;
  locationId?: string;
  ids?: readonly string[];
  /** Most notifications to delete, up to 256, which is the default. */
  most?: number;
  /** Epoch milliseconds. Nothing becomes visible more than a second after it. */
  deadline?: number;
}

export interface Deleted {
  /** Notifications that are deleted, by this statement or, with ids, by an earlier one or one at the same time. */
  deleted: string[];
  /** Notifications with a given id that match the filters and were left. */
  left: string[];
  /** Without ids, the moment with which another call goes on. */
  next?: number;
  /** Notifications and recipients that were deleted. */
  rows: number;
  /** The event, unless it has to be read from the table because an earlier event may still be on its way. */
  event?: OutboxEvent;
}

interface Row extends EventRow {
  moment: string;
  deleted: string[];
  recipients: number;
  more?: boolean;
  deleted_before?: string[];
  candidates?: string[];
  chosen?: string[];
  unpublished: boolean;
}

@Injectable()
export class DeleteNotificationsRepository {
  constructor(private readonly dataSource: DataSource) {}

  /**
   * One statement, and so one commit: the oldest matching notifications, their recipients, the event, and the moment of the command.
   *
   * @returns undefined when the deadline has passed or a race was lost. Then nothing is deleted.
   */
  async delete(deletion: Deletion): Promise<Deleted | undefined> {
    const { apiKey, organizationId, messageId, moment, documentId, locationId, ids, most = MOST_DELETED, deadline } = deletion;
    const [statement, filters] = ids
      ? [DELETE_BY_ID, [documentId ?? null, locationId ?? null, [...new Set(ids)]]]
      : locationId === undefined
        ? [DELETE_BY_DOCUMENT, [documentId]]
        : [DELETE_BY_LOCATION, [documentId, locationId]];
    const event = newEvent(EVENT_TYPES.notificationDeleted, deletion);
    const values = [apiKey, organizationId, messageId, deadline ?? null, moment ?? null, event.id, most, ...filters, event.trace];
    const done = await writeEvent<Row>(this.dataSource, statement, values, event, deadline);
    if (!done) return undefined;
    const { row } = done;
    // One that was chosen and could not be locked is deleted since.
    const deleted = new Set([...row.deleted, ...(row.chosen ?? [])]);
    return {
      deleted: [...deleted, ...(row.deleted_before ?? [])],
      left: (row.candidates ?? []).filter((id) => !deleted.has(id)),
      rows: row.deleted.length + row.recipients,
      ...(row.more && { next: Number(row.moment) }),
      ...(!row.unpublished && { event: done.event }),
    };
  }
}
