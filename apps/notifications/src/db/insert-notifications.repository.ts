import { Injectable } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { queryPrepared } from '@app/postgres/query-prepared';
import type { NotificationContent } from './entities/notification.entity';

/** Operation name of notifications/add in the idempotency keys. */
const OPERATION = 'notifications.add';

/** Longer than the promised 24 hours. */
const KEEP_HOURS = 25;

/** Expired keys deleted for each inserted key. More than 1, so the table shrinks without a separate job. */
const EXPIRED_FOR_EACH = 4;

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
}

/** Stored rows that conflict with a notification that was not inserted. */
export interface StoredBefore {
  /** Fingerprint of the notification with the same id. */
  fingerprint?: Buffer;
  /** The first answer to the same Idempotency-Key. */
  answer?: { fingerprint: Buffer; notificationId: string };
}

const INSERT = {
  name: 'insert-notifications',
  text: `
  WITH moment AS MATERIALIZED (
    SELECT (extract(epoch FROM now) * 1000)::bigint AS ms,
           extract(epoch FROM now + current_setting('statement_timeout')::interval) * 1000 AS latest_end
    FROM (SELECT clock_timestamp() AS now) clock
  ), input AS MATERIALIZED (
    SELECT t.* FROM moment, unnest($1::int[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::boolean[],
                                   $8::bytea[], $9::text[], $10::bigint[], $11::text[], $12::bytea[])
      AS t(position, api_key, organization_id, id, document_id, location_id, notify_all, fingerprint, content, deadline,
           idempotency_key, idempotency_fingerprint)
    WHERE (t.deadline IS NULL OR moment.latest_end <= t.deadline + 500)
      AND NOT EXISTS (SELECT FROM idempotency_keys k
                      WHERE k.api_key = t.api_key AND k.operation = '${OPERATION}' AND k.key = t.idempotency_key)
  ), wanted AS MATERIALIZED (
    SELECT DISTINCT api_key, organization_id FROM input
  ), known AS MATERIALIZED (
    SELECT o.id, w.api_key, w.organization_id FROM wanted w JOIN organizations o USING (api_key, organization_id)
  ), created AS (
    INSERT INTO organizations (api_key, organization_id)
    SELECT api_key, organization_id FROM wanted EXCEPT SELECT api_key, organization_id FROM known ORDER BY 1, 2
    ON CONFLICT DO NOTHING
    RETURNING id, api_key, organization_id
  ), located AS MATERIALIZED (
    SELECT i.*, o.id AS organization
    FROM input i JOIN (SELECT * FROM known UNION ALL SELECT * FROM created) o USING (api_key, organization_id)
  ), inserted AS (
    INSERT INTO notifications (organization, id, "timestamp", document_id, location_id, notify_all, size, fingerprint, content)
    SELECT organization, l.id, moment.ms, document_id, location_id, notify_all, octet_length(content), fingerprint, content::json
    FROM located l, moment ORDER BY organization, l.id
    ON CONFLICT (organization, id) DO NOTHING
    RETURNING organization, id, "timestamp"
  ), stored AS MATERIALIZED (
    SELECT l.*, i."timestamp" FROM inserted i JOIN located l USING (organization, id)
  ), outboxed AS (
    INSERT INTO outbox (organization, notification_id) SELECT organization, id FROM stored
  ), inserted_recipients AS (
    INSERT INTO recipients (organization, user_id, "timestamp", notification_id, document_id, location_id)
    SELECT s.organization, r.user_id, s."timestamp", s.id, s.document_id, s.location_id
    FROM stored s JOIN unnest($13::int[], $14::text[]) AS r(position, user_id) USING (position)
  ), named_documents AS (
    INSERT INTO documents (organization, document_id)
    SELECT DISTINCT organization, document_id FROM stored ORDER BY 1, 2
    ON CONFLICT DO NOTHING
  ), expired AS (
    DELETE FROM idempotency_keys WHERE (api_key, operation, key) IN (
      SELECT api_key, operation, key FROM idempotency_keys k
      WHERE created_at < now() - interval '${KEEP_HOURS} hours'
        AND NOT EXISTS (SELECT FROM input i WHERE i.api_key = k.api_key AND i.idempotency_key = k.key)
      ORDER BY created_at
      LIMIT (SELECT ${EXPIRED_FOR_EACH} * count(*) FROM input WHERE idempotency_key IS NOT NULL)
      FOR UPDATE SKIP LOCKED)
  ), answered AS (
    INSERT INTO idempotency_keys (api_key, operation, key, fingerprint, notification_id)
    SELECT api_key, '${OPERATION}', idempotency_key, idempotency_fingerprint, id
    FROM stored WHERE idempotency_key IS NOT NULL ORDER BY 1, 3
  )
  SELECT position FROM stored`,
};

const FIND_STORED = {
  name: 'find-stored-notifications',
  text: `
  SELECT t.position, n.fingerprint, k.fingerprint AS answer_fingerprint, k.notification_id AS answer_id
  FROM unnest($1::int[], $2::text[], $3::text[], $4::text[], $5::text[])
    AS t(position, api_key, organization_id, id, idempotency_key)
  LEFT JOIN organizations o ON o.api_key = t.api_key AND o.organization_id = t.organization_id
  LEFT JOIN notifications n ON n.organization = o.id AND n.id = t.id
  LEFT JOIN idempotency_keys k ON k.api_key = t.api_key AND k.operation = '${OPERATION}' AND k.key = t.idempotency_key`,
};

const KEEP_ANSWERS = `
  INSERT INTO idempotency_keys (api_key, operation, key, fingerprint, notification_id)
  SELECT t.api_key, '${OPERATION}', t.key, t.fingerprint, t.notification_id
  FROM unnest($1::text[], $2::text[], $3::bytea[], $4::text[]) AS t(api_key, key, fingerprint, notification_id) ORDER BY 1, 3
  ON CONFLICT DO NOTHING
  RETURNING api_key, key`;

/** Writes notifications in batches: the cost of a batch hardly depends on its size. */
@Injectable()
export class InsertNotificationsRepository {
  constructor(private readonly dataSource: DataSource) {}

  /**
   * Inserts the whole batch with one statement, and so one commit: missing organizations and documents, notifications, recipients and
   * idempotency answers. It skips notifications
   * - whose id or Idempotency-Key exists already,
   * - that might become visible more than half a second after their deadline, by the clock of the database and the statement timeout (the
   *   other half of the second is for the clock of the caller),
   * - whose organization another transaction is creating.
   *
   * @param batch at most one notification for each (api key, organization, id) and for each Idempotency-Key, because ON CONFLICT fails on a
   *   key that occurs twice in its own statement. Sorted by the first of these keys, so that two writers lock rows in the same order.
   * @returns indexes of the inserted notifications
   */
  async insert(batch: readonly NewNotification[]): Promise<Set<number>> {
    const recipients = batch.flatMap((entry, position) => entry.content.notifyUsers.map(({ userId }) => ({ position, userId })));
    const deadlines = batch.flatMap(({ deadline }) => deadline ?? []);
    const rows = await queryPrepared<{ position: number }>(
      this.dataSource,
      INSERT,
      [
        batch.map((_, position) => position),
        batch.map(({ apiKey }) => apiKey),
        batch.map(({ organizationId }) => organizationId),
        batch.map(({ id }) => id),
        batch.map(({ documentId }) => documentId),
        batch.map(({ locationId }) => locationId ?? null),
        batch.map(({ notifyAll }) => notifyAll),
        batch.map(({ fingerprint }) => fingerprint),
        batch.map(({ content }) => JSON.stringify(content)),
        batch.map(({ deadline }) => deadline ?? null),
        batch.map(({ idempotency }) => idempotency?.key ?? null),
        batch.map(({ idempotency }) => idempotency?.fingerprint ?? null),
        recipients.map(({ position }) => position),
        recipients.map(({ userId }) => userId),
      ],
      deadlines.length > 0 ? Math.min(...deadlines) : undefined,
    );
    return new Set(rows.map(({ position }) => position));
  }

  /** Finds the conflicts of each notification. A separate statement, because the INSERT cannot see rows committed while it ran. */
  async findStored(batch: readonly NewNotification[]): Promise<StoredBefore[]> {
    const rows = await queryPrepared<{
      position: number;
      fingerprint: Buffer | null;
      answer_fingerprint: Buffer | null;
      answer_id: string | null;
    }>(this.dataSource, FIND_STORED, [
      batch.map((_, position) => position),
      batch.map(({ apiKey }) => apiKey),
      batch.map(({ organizationId }) => organizationId),
      batch.map(({ id }) => id),
      batch.map(({ idempotency }) => idempotency?.key ?? null),
    ]);
    const found = new Map(rows.map((row) => [row.position, row]));
    return batch.map((_, position) => {
      const row = found.get(position);
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
