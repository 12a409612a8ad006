import { randomUUID } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import type { Span } from '@opentelemetry/api';
import { LRUCache } from 'lru-cache';
import { DataSource } from 'typeorm';
import { queryPrepared } from '@app/postgres/connections/query-prepared';
import { jsonTexts } from '@app/postgres/json-texts';
import type { OutboxEvent } from '@app/postgres/outbox/outbox-event';
import type { NotificationContent } from './notification-content';
import { FIND_STORED, INSERT, INSERT_KNOWN, KEEP_ANSWERS } from './insert-notifications.sql';
import { addedEvent, type InsertedRow } from './notification-added';

/** Most remembered documents. */
const MAX_SEEN = 50_000;

/** A notification to be stored. */
export interface NewNotification {
  apiKey: string;
  organizationId: string;
  id: string;
  documentId: string;
  locationId?: string;
  notifyAll: boolean;
  /** SHA-256 of the request. */
  fingerprint: Buffer;
  content: NotificationContent;
  /** Epoch milliseconds after which it must not be stored. */
  deadline?: number;
  idempotency?: { key: string; fingerprint: Buffer };
  /** Trace context of the sampled command that it comes from. */
  trace?: string | null;
}

/** Stored rows that conflict with a notification that was not inserted. */
export interface StoredBefore {
  /** Fingerprint of the notification with the same id. */
  fingerprint?: Buffer;
  /** The first answer to the same Idempotency-Key. */
  answer?: { fingerprint: Buffer; notificationId: string };
}

/** Writes notifications in batches: the cost of a batch hardly depends on its size. */
@Injectable()
export class InsertNotificationsRepository {
  /**
   * Documents that were stored when this process looked last: a guess at the statement that suits. The statement looks itself, because another
   * server, or a restored database, may have neither them nor the same numbers of organizations.
   */
  private readonly seen = new LRUCache<string, true>({ max: MAX_SEEN });

  constructor(private readonly dataSource: DataSource) {}

  /**
   * Inserts the whole batch with one statement, and so one commit: missing organizations and documents, notifications, recipients, events and
   * idempotency answers. It skips notifications
   * - whose id or Idempotency-Key exists already,
   * - that might become visible more than half a second after their deadline, by the clock of the database and the statement timeout,
   * - whose organization another transaction is creating,
   * - whose organization or document was stored and is gone. After {@link findStored} the next call stores it anew.
   *
   * The other half of the second is for the clock of the caller.
   *
   * @param batch at most one notification for each (api key, organization, id) and for each Idempotency-Key, because ON CONFLICT fails on a
   *   key that occurs twice in its own statement. Sorted by the first of these keys, so that two writers lock rows in the same order.
   * @param span of the batch, if a notification of it is sampled
   * @returns the events of the inserted notifications, by their index
   */
  async insert(batch: readonly NewNotification[], span?: Span): Promise<Map<number, OutboxEvent>> {
    // Made here, so that each row of the answer is found without a join.
    const eventIds: string[] = batch.map(() => randomUUID());
    const recipients = batch.flatMap((entry, position) => entry.content.notifyUsers.map(({ userId }) => ({ position, userId })));
    const deadlines = batch.flatMap(({ deadline }) => deadline ?? []);
    const documents = batch.map(documentOf);
    const known = batch.every(({ idempotency }, position) => !idempotency && this.seen.has(documents[position]));
    const rows = await queryPrepared<InsertedRow>(
      this.dataSource,
      known ? INSERT_KNOWN : INSERT,
      [
        recipients.map(({ position }) => position),
        recipients.map(({ userId }) => userId),
        batch.map((_, position) => position),
        batch.map(({ apiKey }) => apiKey),
        batch.map(({ organizationId }) => organizationId),
        batch.map(({ id }) => id),
        batch.map(({ documentId }) => documentId),
        batch.map(({ locationId }) => locationId ?? null),
        batch.map(({ notifyAll }) => notifyAll),
        batch.map(({ fingerprint }) => fingerprint),
        jsonTexts(batch.map(({ content }) => JSON.stringify(content))),
        batch.map(({ deadline }) => deadline ?? null),
        eventIds,
        batch.map(({ trace }) => trace ?? null),
        ...(known
          ? []
          : [
              batch.map(({ idempotency }) => idempotency?.key ?? null),
              batch.map(({ idempotency }) => idempotency?.fingerprint ?? null),
            ]),
      ],
      deadlines.length > 0 ? Math.min(...deadlines) : undefined,
      span,
    );
    const positions = new Map(eventIds.map((id, position) => [id, position]));
    const inserted = new Map(
      rows.map((row) => {
        const position = positions.get(row.id) as number;
        return [position, addedEvent(batch[position], row)];
      }),
    );
    for (const position of inserted.keys()) this.seen.set(documents[position], true);
    return inserted;
  }

  /**
   * Finds the conflicts of each notification that was not inserted. A separate statement, because the INSERT cannot see rows committed while it
   * ran.
   */
  async findStored(batch: readonly NewNotification[], span?: Span): Promise<StoredBefore[]> {
    const rows = await queryPrepared<{
      position: number;
      fingerprint: Buffer | null;
      answer_fingerprint: Buffer | null;
      answer_id: string | null;
    }>(
      this.dataSource,
      FIND_STORED,
      [
        batch.map((_, position) => position),
        batch.map(({ apiKey }) => apiKey),
        batch.map(({ organizationId }) => organizationId),
        batch.map(({ id }) => id),
        batch.map(({ idempotency }) => idempotency?.key ?? null),
      ],
      undefined,
      span,
    );
    const found = new Map(rows.map((row) => [row.position, row]));
    return batch.map((notification, position) => {
      const row = found.get(position);
      // Without a conflict, it may have been skipped because its document is gone.
      if (!row?.fingerprint && !notification.idempotency) this.seen.delete(documentOf(notification));
      return {
        ...(row?.fingerprint && { fingerprint: row.fingerprint }),
        ...(row?.answer_fingerprint &&
          row.answer_id && { answer: { fingerprint: row.answer_fingerprint, notificationId: row.answer_id } }),
      };
    });
  }

  /**
   * Stores the idempotency answer of notifications that existed before under the same id. The INSERT skipped them and stored no answer.
   *
   * @param batch at most one notification for each Idempotency-Key
   * @returns indexes of notifications without a key, and of those that own their key now: another request may have taken it meanwhile
   */
  async keepAnswers(batch: readonly NewNotification[]): Promise<Set<number>> {
    const keyed = batch.flatMap(({ apiKey, id, idempotency }) => (idempotency ? [{ apiKey, id, idempotency }] : []));
    const rows =
      keyed.length === 0
        ? []
        : await this.dataSource.query<{ api_key: string; key: string }[]>(KEEP_ANSWERS, [
            keyed.map(({ apiKey }) => apiKey),
            keyed.map(({ idempotency }) => idempotency.key),
            keyed.map(({ idempotency }) => idempotency.fingerprint),
            keyed.map(({ id }) => id),
          ]);
    const kept = new Set(rows.map(({ api_key: apiKey, key }) => JSON.stringify([apiKey, key])));
    return new Set(
      batch.flatMap(({ apiKey, idempotency }, index) =>
        !idempotency || kept.has(JSON.stringify([apiKey, idempotency.key])) ? [index] : [],
      ),
    );
  }
}

const documentOf = ({ apiKey, organizationId, documentId }: NewNotification): string =>
  JSON.stringify([apiKey, organizationId, documentId]);
