import { Injectable, Logger } from '@nestjs/common';
import { Histogram } from 'prom-client';
import { STATEMENT_TIMEOUT_MS } from '@app/postgres/statement-timeout';
import { isDatabaseAway, isRejectedByValue, isTransient, sqlState, violatedConstraint } from '@app/postgres/errors';
import { OutboxRelay } from '@app/postgres/outbox';
import { InsertNotificationsRepository, type NewNotification, type StoredBefore } from '../db/insert-notifications.repository';

/**
 * What became of a notification:
 * - `stored`: it is there, now or from an earlier delivery of the same command;
 * - `different`: another notification has its id;
 * - `keyReused`: its Idempotency-Key belongs to another request;
 * - `expired`: its deadline had passed, nothing was stored;
 * - `contended`: it lost every race for its organization or row, nothing was stored.
 */
export type Written =
  { outcome: 'stored'; notificationId: string } | { outcome: 'different' | 'keyReused' | 'expired' | 'contended' };

interface Entry {
  notification: NewNotification;
  tries: number;
  resolve(written: Written): void;
  reject(error: unknown): void;
}

/** Statements stay well below their timeout: as many as have 10,000 recipients. Half of the usual prefetch: two batches share it. */
const MAX_BATCH = 128;
const MAX_BATCH_RECIPIENTS = 10_000;

/** The same for a batch in which somebody's deadline is near: its statement has less time. */
const MAX_HURRIED_RECIPIENTS = 2000;

/**
 * While PostgreSQL works on one batch this process would wait: a second one may be on its way, when what has gathered is worth a statement
 * and a commit of its own.
 */
const MAX_WRITING = 2;
const WORTH_A_SECOND = { notifications: 64, recipients: 1000 };

/** Tries of one notification, conflicts and deadlocks included, before the caller is told that nothing was stored. */
const MAX_TRIES = 4;

/** Violated when another writer commits the same Idempotency-Key between our look and our insert: it is found as stored afterwards. */
const ANSWERED_MEANWHILE = 'idempotency_keys_pkey';

const batchSize = new Histogram({
  name: 'notification_batch_size',
  help: 'Notifications that shared one commit',
  buckets: [1, 2, 4, 8, 16, 32, 64, MAX_BATCH],
});
const batchSeconds = new Histogram({
  name: 'notification_batch_seconds',
  help: 'Duration of one batch, from the first statement to the last answer',
  buckets: [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5],
});

/**
 * Group commit: while a batch is being written the others gather, and the next batch takes them all. There is no timer: alone a
 * notification is written at once, under load a hundred share one commit. Bounded by the consumer's prefetch.
 */
@Injectable()
export class NotificationWriter {
  private readonly logger = new Logger(NotificationWriter.name);
  private readonly waiting: Entry[] = [];
  private readonly keysBeingWritten = new Set<string | undefined>();
  private writing = 0;

  constructor(
    private readonly repository: InsertNotificationsRepository,
    private readonly outbox: OutboxRelay,
  ) {}

  /**
   * @returns once its outcome is committed
   * @throws OutboxFull when nothing can be told of it, so that nothing was stored; the database's error when it is away: whether the notification was stored is unknown then, and a repetition finds out
   */
  async add(notification: NewNotification): Promise<Written> {
    this.outbox.requireRoom();
    return new Promise((resolve, reject) => {
      this.waiting.push({ notification, tries: 0, resolve, reject });
      if (this.isWorthABatch()) void this.writeNext();
    });
  }

  /** Whether its Idempotency-Key has an answer already, whatever the request was. */
  async hasAnswer(notification: NewNotification): Promise<boolean> {
    if (!notification.idempotency) return false;
    const [stored] = await this.repository.findStored([notification]);
    return stored?.answer !== undefined;
  }

  private isWorthABatch(): boolean {
    if (this.writing === 0) return this.waiting.length > 0;
    const { notifications, recipients } = WORTH_A_SECOND;
    return this.writing < MAX_WRITING && (this.waiting.length >= notifications || recipientsOf(this.waiting) >= recipients);
  }

  private async writeNext(): Promise<void> {
    this.writing++;
    // Deliveries that came in one packet reach add() in the same turn of the event loop.
    await new Promise((resolve) => setImmediate(resolve));
    const { leaders, followers } = this.takeBatch();
    const size = leaders.length + followers.length;
    if (size > 0) {
      const observe = batchSeconds.startTimer();
      batchSize.observe(size);
      const left = await this.insert(leaders);
      await this.resolveStored([...left, ...followers]);
      observe();
    }
    for (const entry of leaders) this.keysBeingWritten.delete(idempotencyKeyOf(entry));
    this.writing--;
    // All that waits may have to wait for the other batch.
    if (size > 0 && this.isWorthABatch()) void this.writeNext();
  }

  /**
   * Leaders have distinct ids and idempotency keys and are inserted. Followers are only looked up: they repeat a leader's id and learn from
   * it what became of it, or are too late to be inserted at all. Who has the Idempotency-Key of another that is being written waits for
   * its answer.
   */
  private takeBatch(): { leaders: Entry[]; followers: Entry[] } {
    const leaders = new Map<string, Entry>();
    const followers: Entry[] = [];
    const postponed: Entry[] = [];
    let recipients = 0;
    let looked = 0;
    let mostRecipients = MAX_BATCH_RECIPIENTS;
    for (const entry of this.waiting) {
      const idempotencyKey = idempotencyKeyOf(entry);
      if (this.keysBeingWritten.has(idempotencyKey)) {
        looked++;
        postponed.push(entry);
        continue;
      }
      const { content, deadline = Infinity } = entry.notification;
      const left = deadline - Date.now();
      if (left >= 0 && left < STATEMENT_TIMEOUT_MS) mostRecipients = MAX_HURRIED_RECIPIENTS;
      recipients += content.notifyUsers.length;
      const taken = leaders.size + followers.length;
      if (taken > 0 && (taken >= MAX_BATCH || recipients > mostRecipients)) break;
      looked++;
      const identity = identityOf(entry);
      if (leaders.has(identity) || left < 0) followers.push(entry);
      else {
        leaders.set(identity, entry);
        if (idempotencyKey) this.keysBeingWritten.add(idempotencyKey);
      }
    }
    this.waiting.splice(0, looked, ...postponed);
    const sorted = [...leaders].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, entry]) => entry);
    return { leaders: sorted, followers };
  }

  /** Resolves what was inserted and returns the others. A statement that fails for one row is tried again in halves. */
  private async insert(entries: Entry[]): Promise<Entry[]> {
    if (entries.length === 0) return [];
    try {
      const inserted = await this.repository.insert(entries.map(({ notification }) => notification));
      if (inserted.size > 0) this.outbox.wake();
      const left: Entry[] = [];
      entries.forEach((entry, position) => {
        if (inserted.has(position)) entry.resolve({ outcome: 'stored', notificationId: entry.notification.id });
        else left.push(entry);
      });
      return left;
    } catch (error) {
      if (isDatabaseAway(error)) return rejectAll(entries, error);
      if (isRejectedByValue(error) && entries.length > 1) {
        const middle = entries.length >> 1;
        return [...(await this.insert(entries.slice(0, middle))), ...(await this.insert(entries.slice(middle)))];
      }
      if (isTransient(error) || violatedConstraint(error) === ANSWERED_MEANWHILE) {
        this.logger.warn({ msg: 'a batch was rolled back', notifications: entries.length, code: sqlState(error) });
        return entries;
      }
      return rejectAll(entries, error);
    }
  }

  /** Tells those that were not inserted why; those that nothing stands in the way of wait for the next batch. */
  private async resolveStored(entries: Entry[]): Promise<void> {
    if (entries.length === 0) return;
    const repeated: Entry[] = [];
    try {
      const stored = await this.repository.findStored(entries.map(({ notification }) => notification));
      entries.forEach((entry, index) => {
        const written = judge(entry.notification, stored[index] ?? {});
        if (written === 'again') this.tryAgain(entry);
        else if (written.outcome === 'stored' && written.notificationId === entry.notification.id && !stored[index]?.answer) {
          repeated.push(entry);
        } else entry.resolve(written);
      });
    } catch (error) {
      return this.tryAgainOrReject(entries, error);
    }
    try {
      const kept = await this.repository.keepAnswers(repeated.map(({ notification }) => notification));
      repeated.forEach((entry, index) => {
        if (kept.has(index)) entry.resolve({ outcome: 'stored', notificationId: entry.notification.id });
        else this.tryAgain(entry);
      });
    } catch (error) {
      this.tryAgainOrReject(repeated, error);
    }
  }

  private tryAgainOrReject(entries: Entry[], error: unknown): void {
    if (isTransient(error)) for (const entry of entries) this.tryAgain(entry);
    else rejectAll(entries, error);
  }

  private tryAgain(entry: Entry): void {
    entry.tries++;
    if (entry.tries >= MAX_TRIES) entry.resolve({ outcome: 'contended' });
    else this.waiting.push(entry);
  }
}

function judge(notification: NewNotification, { fingerprint, answer }: StoredBefore): Written | 'again' {
  const { idempotency, deadline } = notification;
  if (answer && idempotency) {
    return answer.fingerprint.equals(idempotency.fingerprint)
      ? { outcome: 'stored', notificationId: answer.notificationId }
      : { outcome: 'keyReused' };
  }
  if (fingerprint) {
    return fingerprint.equals(notification.fingerprint)
      ? { outcome: 'stored', notificationId: notification.id }
      : { outcome: 'different' };
  }
  return deadline !== undefined && deadline < Date.now() ? { outcome: 'expired' } : 'again';
}

const recipientsOf = (entries: readonly Entry[]): number =>
  entries.reduce((sum, { notification }) => sum + notification.content.notifyUsers.length, 0);

const idempotencyKeyOf = ({ notification: { apiKey, idempotency } }: Entry): string | undefined =>
  idempotency && JSON.stringify([apiKey, idempotency.key]);

const identityOf = ({ notification: { apiKey, organizationId, id } }: Entry): string =>
  JSON.stringify([apiKey, organizationId, id]);

function rejectAll(entries: Entry[], error: unknown): Entry[] {
  for (const entry of entries) entry.reject(error);
  return [];
}
