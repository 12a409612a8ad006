import { setImmediate as immediate } from 'node:timers/promises';
import { Injectable, Logger } from '@nestjs/common';
import type { Span } from '@opentelemetry/api';
import { isDatabaseAway, isRejectedByValue, isTransient, sqlState, violatedConstraint } from '@app/postgres/errors';
import { OutboxRelay } from '@app/postgres/outbox/outbox';
import { startBatch } from '@app/tracing/batch-span';
import { outside } from '@app/tracing/tracing';
import { InsertNotificationsRepository, type NewNotification } from '../db/insert-notifications.repository';
import { batchSeconds, batchSize, writers } from '../metrics';
import { idempotencyKeyOf, WriteQueues, type Entry, type WriteQueue } from './write-queue';
import { judge, type Written } from './written';

/**
 * Most batches of a queue that are written at once. The second one uses the time that the first one spends in PostgreSQL. It starts only when it is
 * large enough to be worth its own statement and commit.
 */
const MAX_WRITING = 2;

/** Most attempts of one notification, conflicts and deadlocks included. Then the outcome is `contended`. */
const MAX_TRIES = 4;

/**
 * Violated when something else commits between the look and the INSERT: the same Idempotency-Key, whose stored answer the retry finds, or the
 * removal of the tenant.
 */
const OVERTAKEN: readonly (string | undefined)[] = ['idempotency_keys_pkey', 'documents_organization_fkey'];

/**
 * Group commit: notifications gather while a batch is being written, and the next batch takes them all. There is no timer: alone a notification is
 * written at once, under load a hundred share one commit. Usual, heavy and hurried ones do so apart from each other ({@link WriteQueue}). The
 * consumer's prefetch limits the number of waiting notifications.
 */
@Injectable()
export class NotificationWriter {
  private readonly logger = new Logger(NotificationWriter.name);
  private readonly queues = new WriteQueues();
  private readonly keysBeingWritten = new Set<string | undefined>();

  constructor(
    private readonly repository: InsertNotificationsRepository,
    private readonly outbox: OutboxRelay,
  ) {
    writers.add(this.queues);
  }

  /**
   * @returns the outcome, once it is committed
   * @throws OutboxFull when the outbox has no room for the event; nothing was stored. The database's error when the database is away; then the
   *   notification may be stored, and a repetition finds that out
   */
  async add(notification: NewNotification, span?: Span): Promise<Written> {
    this.outbox.requireRoom();
    const queue = this.queues.of(notification);
    return new Promise((resolve, reject) => {
      queue.waiting.push({ notification, tries: 0, span, resolve, reject });
      if (isWorthABatch(queue)) void outside(() => this.writeNext(queue));
    });
  }

  /** Whether its Idempotency-Key has an answer already, for this or another request. */
  async hasAnswer(notification: NewNotification, span?: Span): Promise<boolean> {
    if (!notification.idempotency) return false;
    const [stored] = await this.repository.findStored([notification], span);
    return stored?.answer !== undefined;
  }

  private async writeNext(queue: WriteQueue): Promise<void> {
    const alone = queue.writing === 0;
    queue.writing++;
    queue.collecting = true;
    // Deliveries of one network packet reach add() in the same turn of the event loop: wait for all of them.
    await immediate();
    queue.collecting = false;
    const { leaders, followers } = queue.take(alone, this.keysBeingWritten);
    const size = leaders.length + followers.length;
    // It is 0 when all waiting notifications have to wait for another batch.
    if (size > 0) {
      if (isWorthABatch(queue)) void this.writeNext(queue);
      const observe = batchSeconds.startTimer();
      batchSize.observe(size);
      const span = startBatch('store notifications', [...leaders, ...followers]);
      const left = await this.insert(leaders, span);
      await this.resolveStored([...left, ...followers], span);
      span?.end();
      observe();
    }
    for (const entry of [...leaders, ...followers]) this.keysBeingWritten.delete(idempotencyKeyOf(entry));
    queue.writing--;
    // A notification of another queue may have waited for an Idempotency-Key of this batch.
    if (size > 0) for (const one of this.queues.all) if (isWorthABatch(one)) void this.writeNext(one);
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
      if (isTransient(error) || OVERTAKEN.includes(violatedConstraint(error))) {
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
    else this.queues.of(entry.notification).waiting.push(entry);
  }
}

function isWorthABatch(queue: WriteQueue): boolean {
  if (queue.collecting) return false;
  if (queue.writing === 0) return queue.waiting.length > 0;
  return queue.writing < MAX_WRITING && queue.isWorthASecond;
}

function rejectAll(entries: Entry[], error: unknown): Entry[] {
  for (const entry of entries) entry.reject(error);
  return [];
}
