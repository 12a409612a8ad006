import { Injectable, Logger } from '@nestjs/common';
import type { Span } from '@opentelemetry/api';
import { STATEMENT_TIMEOUT_MS } from '@app/postgres/statement-timeout';
import { isDatabaseAway, isRejectedByValue, isTransient, sqlState, violatedConstraint } from '@app/postgres/errors';
import { OutboxRelay } from '@app/postgres/outbox';
import { outside } from '@app/tracing/tracing';
import { InsertNotificationsRepository, type NewNotification } from '../db/insert-notifications.repository';
import { startBatch } from './batch-span';
import { batchSeconds, batchSize, MAX_BATCH, writerWaiting } from '../metrics';
import { judge, type Written } from './written';

interface Entry {
  notification: NewNotification;
  tries: number;
  /** The span of its command. */
  span?: Span;
  resolve(written: Written): void;
  reject(error: unknown): void;
}

/** Most recipients in a batch: they stay well below the statement timeout. */
const MAX_BATCH_RECIPIENTS = 10_000;

/** Most recipients in a batch with a near deadline, whose statement has less time. */
const MAX_HURRIED_RECIPIENTS = 2000;

/**
 * Most batches written at once. The second one uses the time that the first one spends in PostgreSQL. It starts only when it is large enough to be
 * worth its own statement and commit. A lane has 64 light commands in flight, or 8 with 100 recipients, and half of them must be enough.
 */
const MAX_WRITING = 2;
const WORTH_A_SECOND = { notifications: 32, recipients: 300 };

/** Most attempts of one notification, conflicts and deadlocks included. Then the outcome is `contended`. */
const MAX_TRIES = 4;

/** Violated when another writer commits the same Idempotency-Key between the check and the INSERT. The retry finds the stored answer. */
const ANSWERED_MEANWHILE = 'idempotency_keys_pkey';

/**
 * Group commit: notifications gather while a batch is being written, and the next batch takes them all. There is no timer: alone a notification is
 * written at once, under load a hundred share one commit. The consumer's prefetch limits the number of waiting notifications.
 */
@Injectable()
export class NotificationWriter {
  private readonly logger = new Logger(NotificationWriter.name);
  private readonly waiting: Entry[] = [];
  private readonly keysBeingWritten = new Set<string | undefined>();
  private writing = 0;
  /** The newest of the batches being written has not taken its notifications yet. */
  private collecting = false;

  constructor(
    private readonly repository: InsertNotificationsRepository,
    private readonly outbox: OutboxRelay,
  ) {}

  /**
   * @returns the outcome, once it is committed
   * @throws OutboxFull when the outbox has no room for the event; nothing was stored. The database's error when the database is away; then the
   *   notification may be stored, and a repetition finds that out
   */
  async add(notification: NewNotification, span?: Span): Promise<Written> {
    this.outbox.requireRoom();
    return new Promise((resolve, reject) => {
      this.waiting.push({ notification, tries: 0, span, resolve, reject });
      if (this.isWorthABatch()) void outside(() => this.writeNext());
    });
  }

  /** Whether its Idempotency-Key has an answer already, for this or another request. */
  async hasAnswer(notification: NewNotification, span?: Span): Promise<boolean> {
    if (!notification.idempotency) return false;
    const [stored] = await this.repository.findStored([notification], span);
    return stored?.answer !== undefined;
  }

  private isWorthABatch(): boolean {
    if (this.collecting) return false;
    if (this.writing === 0) return this.waiting.length > 0;
    return this.writing < MAX_WRITING && this.isWorthASecond();
  }

  private isWorthASecond(): boolean {
    const { notifications, recipients } = WORTH_A_SECOND;
    return this.waiting.length >= notifications || recipientsOf(this.waiting) >= recipients;
  }

  private async writeNext(): Promise<void> {
    const alone = this.writing === 0;
    this.writing++;
    this.collecting = true;
    // Deliveries of one network packet reach add() in the same turn of the event loop: wait for all of them.
    await new Promise((resolve) => setImmediate(resolve));
    this.collecting = false;
    const { leaders, followers } = this.takeBatch(alone);
    const size = leaders.length + followers.length;
    // It is 0 when all waiting notifications have to wait for the other batch.
    if (size > 0) {
      if (this.isWorthABatch()) void this.writeNext();
      const observe = batchSeconds.startTimer();
      batchSize.observe(size);
      const span = startBatch([...leaders, ...followers]);
      const left = await this.insert(leaders, span);
      await this.resolveStored([...left, ...followers], span);
      span?.end();
      observe();
    }
    for (const entry of leaders) this.keysBeingWritten.delete(idempotencyKeyOf(entry));
    this.writing--;
    if (size > 0 && this.isWorthABatch()) void this.writeNext();
  }

  /**
   * Leaders have distinct ids and idempotency keys, and are inserted. Followers are only looked up: they repeat the id of a leader and share its
   * outcome, or their deadline has passed. A notification whose Idempotency-Key is being written waits for that answer. A batch beside no other
   * leaves half of many for the next: when everything that may be in flight waits already, nothing else will come for it.
   */
  private takeBatch(alone: boolean): { leaders: Entry[]; followers: Entry[] } {
    const leaders = new Map<string, Entry>();
    const followers: Entry[] = [];
    const postponed: Entry[] = [];
    let recipients = 0;
    let looked = 0;
    const halves = alone && this.isWorthASecond();
    const most = halves ? Math.min(MAX_BATCH, Math.ceil(this.waiting.length / 2)) : MAX_BATCH;
    let mostRecipients = halves ? Math.min(MAX_BATCH_RECIPIENTS, recipientsOf(this.waiting) / 2) : MAX_BATCH_RECIPIENTS;
    for (const entry of this.waiting) {
      const idempotencyKey = idempotencyKeyOf(entry);
      if (this.keysBeingWritten.has(idempotencyKey)) {
        looked++;
        postponed.push(entry);
        continue;
      }
      const { content, deadline = Infinity } = entry.notification;
      const left = deadline - Date.now();
      if (left >= 0 && left < STATEMENT_TIMEOUT_MS) mostRecipients = Math.min(mostRecipients, MAX_HURRIED_RECIPIENTS);
      recipients += content.notifyUsers.length;
      const taken = leaders.size + followers.length;
      if (taken > 0 && (taken >= most || recipients > mostRecipients)) break;
      looked++;
      const identity = identityOf(entry);
      if (leaders.has(identity) || left < 0) followers.push(entry);
      else {
        leaders.set(identity, entry);
        if (idempotencyKey) this.keysBeingWritten.add(idempotencyKey);
      }
    }
    this.waiting.splice(0, looked, ...postponed);
    writerWaiting.set(this.waiting.length);
    const sorted = [...leaders].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, entry]) => entry);
    return { leaders: sorted, followers };
  }

  /** Resolves the inserted notifications and returns the others. A statement that fails because of one row is retried in halves. */
  private async insert(entries: Entry[], span?: Span): Promise<Entry[]> {
    if (entries.length === 0) return [];
    try {
      const since = performance.now();
      const inserted = await this.repository.insert(
        entries.map(({ notification }) => notification),
        span,
      );
      const left: Entry[] = [];
      entries.forEach((entry, position) => {
        if (inserted.has(position)) entry.resolve({ outcome: 'stored', notificationId: entry.notification.id });
        else left.push(entry);
      });
      this.outbox.add([...inserted.values()], since);
      return left;
    } catch (error) {
      if (isDatabaseAway(error)) return rejectAll(entries, error);
      if (isRejectedByValue(error) && entries.length > 1) {
        const middle = entries.length >> 1;
        return [...(await this.insert(entries.slice(0, middle), span)), ...(await this.insert(entries.slice(middle), span))];
      }
      if (isTransient(error) || violatedConstraint(error) === ANSWERED_MEANWHILE) {
        this.logger.warn({ msg: 'a batch was rolled back', notifications: entries.length, code: sqlState(error) });
        return entries;
      }
      return rejectAll(entries, error);
    }
  }

  /** Resolves notifications that were not inserted with the reason. Notifications without a conflict go into the next batch. */
  private async resolveStored(entries: Entry[], span?: Span): Promise<void> {
    if (entries.length === 0) return;
    const repeated: Entry[] = [];
    try {
      const stored = await this.repository.findStored(
        entries.map(({ notification }) => notification),
        span,
      );
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
