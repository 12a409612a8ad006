import { setTimeout as sleep } from 'node:timers/promises';
import { Logger } from '@nestjs/common';
import type { Notification, PoolClient } from 'pg';
import { Counter, Gauge } from 'prom-client';
import type { DataSource, QueryRunner } from 'typeorm';
import { waitAfter } from './backoff';
import { GENERIC_PLANS } from './data-source';
import { KeptEvents } from './kept-events';

/** An event as the transaction of what it tells has left it. */
export interface OutboxEvent {
  /** Its place in the table: column `seq`. */
  seq: string;
  /** UUID; the same whenever it is published. */
  id: string;
  type: string;
  /** The tenant. */
  apiKey: string;
  organizationId: string;
  occurredAt: Date;
  /** JSON text. */
  data: string;
}

export interface OutboxLimits {
  events: number;
  /** The first event may have more. */
  bytes: number;
}

export interface OutboxOptions {
  /**
   * Deletes the oldest events that no other relay has locked, but for those with one of these `seq`, and returns them. Its statement has to suit
   * {@link GENERIC_PLANS}.
   */
  take(client: PoolClient, limits: OutboxLimits, without: readonly string[]): Promise<OutboxEvent[]>;
  /**
   * Resolves when the broker has every one of them; settles within 4 s, because a transaction waits.
   *
   * @returns the ids of those that have to be published again: they stay, and hold up no others. There must be an end to their number
   */
  publish(events: readonly OutboxEvent[]): Promise<ReadonlySet<string> | void>;
  /** With more events than that no further commands are carried out until the broker has taken some. Default 1,000,000. */
  maxEvents?: number;
  /** NOTIFY on this channel wakes it. Takes one connection of the pool for good, and none when absent. */
  wokenBy?: string;
}

const LIMITS: OutboxLimits = { events: 200, bytes: 4 * 1024 * 1024 };
/** Between two batches that are not full, in milliseconds, after one of few events and after others: a batch costs much more than what it holds. */
const GATHERING_MS = [20, 50] as const;
const FEW = 10;
/** How often it looks for what another process has written and not published, because that has ended. */
const SWEEP_MS = 10_000;
const MAX_EVENTS = 1_000_000;
/** Losing the deletion only means to publish again: the disk need not be waited for. To plan anew for each few events would cost more than they. */
const SETTINGS = Object.entries({ synchronous_commit: 'off', ...GENERIC_PLANS });
const BEGIN = ['BEGIN', ...SETTINGS.map(([name, value]) => `SET LOCAL ${name} = ${value}`)].join('; ');

const published = new Counter({ name: 'outbox_published_total', help: 'Events that the broker has confirmed.' });
const failures = new Counter({
  name: 'outbox_failures_total',
  help: 'Batches of events that could not be published and stay in the outbox.',
});
const oldestSeconds = new Gauge({
  name: 'outbox_oldest_seconds',
  help: 'Age of the oldest event in the outbox, 0 when it is empty; looked at every 10 s.',
});

/** A command has to wait: it would write an event, and the outbox is full. */
export class OutboxFull extends Error {
  constructor() {
    super('the outbox is full, because the broker takes no events');
  }
}

/**
 * Publishes what the transactions of this service leave in its table `outbox`: at least once, by any number of processes. An event is deleted
 * in the transaction that publishes it: what a process had in hand when it ended is there for the next.
 */
export class OutboxRelay {
  private readonly logger = new Logger('Outbox');
  private readonly closing = new AbortController();
  private running?: Promise<void>;
  private woken = false;
  private failed = 0;
  private full = false;
  private timer?: NodeJS.Timeout;
  private sweeping: Promise<void> = Promise.resolve();
  private listening?: QueryRunner;
  private ignore?: () => void;
  private readonly kept = new KeptEvents(() => this.wake());

  constructor(
    private readonly dataSource: DataSource,
    private readonly options: OutboxOptions,
  ) {}

  /** Begins with what is there already. */
  start(): void {
    this.timer = setInterval(() => void this.sweepNext(), SWEEP_MS).unref();
    void this.sweepNext();
  }

  /** To be called after each commit that may have left events. Costs nothing while a batch is on its way. */
  wake(): void {
    this.woken = true;
    if (this.closing.signal.aborted) return;
    this.running ??= this.run();
  }

  /** @throws OutboxFull */
  requireRoom(): void {
    if (this.full) throw new OutboxFull();
  }

  /** undefined while commands may write events, else why not. */
  check(): string | undefined {
    return this.full ? 'is full: the broker takes no events' : undefined;
  }

  /** Publishes what there is, as far as one batch goes, and ends. */
  async stop(): Promise<void> {
    clearInterval(this.timer);
    this.kept.stop();
    this.closing.abort();
    await this.running;
    await this.sweeping;
    this.ignore?.();
    await this.listening?.release();
    if (this.woken && this.failed === 0) await this.publishBatch().catch(() => undefined);
  }

  private async run(): Promise<void> {
    const { signal } = this.closing;
    // Whoever commits in this turn of the event loop shares the batch.
    await new Promise((resolve) => setImmediate(resolve));
    while (this.woken && !signal.aborted) {
      this.woken = false;
      try {
        const { events, full } = await this.publishBatch();
        this.woken ||= full;
        if (!full) this.kept.emptied();
        this.failed = 0;
        if (this.full) await this.sweepNext();
        const [afterFew, afterMany] = GATHERING_MS;
        if (!full && !signal.aborted)
          await sleep(events < FEW ? afterFew : afterMany, undefined, { signal }).catch(() => undefined);
      } catch (error) {
        this.woken = true;
        await this.backOff(error as Error);
      }
    }
    this.running = undefined;
  }

  private async backOff({ message }: Error): Promise<void> {
    failures.inc();
    if (this.failed++ === 0) this.logger.warn({ msg: 'events stay in the outbox for now', reason: message });
    const { signal } = this.closing;
    await sleep(waitAfter(this.failed), undefined, { signal }).catch(() => undefined);
  }

  /** Deletes what is published of a batch, and leaves the rest out for a while. */
  private async keep(client: PoolClient, events: readonly OutboxEvent[], again: ReadonlySet<string>): Promise<void> {
    await client.query('ROLLBACK');
    const round = this.kept.add(events.filter(({ id }) => again.has(id)).map(({ seq }) => seq));
    if (round !== undefined) failures.inc();
    if (round === 1) this.logger.warn({ msg: 'events stay in the outbox for now', reason: 'a listener refuses them' });
    const done = events.filter(({ id }) => !again.has(id)).map(({ seq }) => seq);
    if (done.length > 0) await client.query('DELETE FROM outbox WHERE seq = ANY ($1::bigint[])', [done]);
    published.inc(done.length);
  }

  /** @returns how many events it published, and whether there may be more of them */
  private async publishBatch(): Promise<{ events: number; full: boolean }> {
    const runner = this.dataSource.createQueryRunner();
    try {
      const client = (await runner.connect()) as PoolClient;
      await client.query(BEGIN);
      try {
        const events = await this.options.take(client, LIMITS, this.kept.all);
        const again = events.length > 0 ? await this.options.publish(events) : undefined;
        if (again && again.size > 0) await this.keep(client, events, again);
        else {
          await client.query('COMMIT');
          published.inc(events.length);
        }
        const bytes = events.reduce((sum, { data }) => sum + data.length, 0);
        return { events: events.length, full: events.length === LIMITS.events || bytes > LIMITS.bytes / 2 };
      } catch (error) {
        // A lost connection has rolled back by itself, and released the runner.
        if (!runner.isReleased) await client.query('ROLLBACK').catch(() => undefined);
        throw error;
      }
    } finally {
      await runner.release();
    }
  }

  /** Each sweep asks on the connection that listens: one that was lost without a word is noticed, and the next sweep listens on another. */
  private async sweeper(): Promise<Pick<DataSource, 'query'>> {
    const { wokenBy } = this.options;
    if (wokenBy === undefined) return this.dataSource;
    if (this.listening && !this.listening.isReleased) return this.listening;
    const runner = this.dataSource.createQueryRunner();
    try {
      const client = (await runner.connect()) as PoolClient;
      const onNotification = ({ channel }: Notification) => channel === wokenBy && this.wake();
      client.on('notification', onNotification);
      // The pool hands the connection on, with its listeners.
      this.ignore = () => client.off('notification', onNotification);
      await client.query(`LISTEN ${client.escapeIdentifier(wokenBy)}`);
      return (this.listening = runner);
    } catch (error) {
      await runner.release();
      throw error;
    }
  }

  /** One after the other: two at once would listen on two connections. */
  private sweepNext(): Promise<void> {
    return (this.sweeping = this.sweeping.then(() => this.sweep()));
  }

  private async sweep(): Promise<void> {
    const { maxEvents = MAX_EVENTS } = this.options;
    try {
      const [found] = await (
        await this.sweeper()
      ).query<{ seconds: number; events: number }[]>(
        `SELECT (SELECT coalesce(extract(epoch FROM clock_timestamp() - min(occurred_at)), 0)::float8
                 FROM (SELECT occurred_at FROM outbox ORDER BY seq LIMIT 1) first) AS seconds,
                (SELECT count(*)::int FROM (SELECT FROM outbox LIMIT $1) bounded) AS events`,
        [maxEvents],
      );
      oldestSeconds.set(found?.seconds ?? 0);
      const full = found?.events === maxEvents;
      if (full && !this.full) this.logger.error({ msg: 'the outbox is full: commands wait', events: maxEvents });
      this.full = full;
      if (found && found.events > 0) this.wake();
    } catch (error) {
      this.logger.warn({ msg: 'the outbox could not be looked at', reason: (error as Error).message });
    }
  }
}
