import { setImmediate as immediate, setTimeout as sleep } from 'node:timers/promises';
import { Logger } from '@nestjs/common';
import type { DataSource } from 'typeorm';
import { outside } from '@app/tracing/tracing';
import { waitAfter } from '@app/runtime/wait-after';
import { isDatabaseAway, reasonOf, sqlState } from '../errors';
import { EVENT_MEMORY_MS, EventMemory } from './event-memory';
import { LaterLook } from './later-look';
import type { OutboxEvent, OutboxOptions } from './outbox-event';
import { OutboxListener } from './outbox-listener';
import { outboxFailures, outboxOldestSeconds, outboxEvents, outboxEventsLimit, outboxPublished } from '../metrics';
import { LIMITS, NOTHING, StoredEvents, type Passed } from './stored-events';

/** Pause in milliseconds after a batch that was not full: of few events, and of more. Events gather meanwhile, because a batch has a high fixed cost. */
const GATHERING_MS = [20, 50] as const;
const FEW = 10;
/** How often it looks for what another process has written and not published, because that has ended. */
const SWEEP_MS = 10_000;
/** When rows that are too young now are old enough. The difference is for timers and clocks. */
const LOOK_AGAIN_MS = EVENT_MEMORY_MS + 200;
const MAX_EVENTS = 1_000_000;

/** An error of the network has no message when the host has two addresses. */
const whyOf = (error: Error): string => error.message || reasonOf(error);

/** A command has to wait: it would write an event, and the outbox is full. */
export class OutboxFull extends Error {
  constructor() {
    super('the outbox is full, because the broker takes no events');
  }
}

/**
 * Publishes what the transactions of this service leave in its table `outbox`: at least once, by any number of processes. An event is deleted
 * after the broker has it: what a process had in hand when it ended is there for the next.
 *
 * Three things lead to a batch: {@link add} with events that this process has just committed, {@link wake} after a commit without them, and every
 * 10 s a look at the table, for events of processes that have ended.
 */
export class OutboxRelay {
  private readonly logger = new Logger('Outbox');
  private readonly closing = new AbortController();
  private running?: Promise<void>;
  private woken = false;
  private failed = 0;
  private full = false;
  /** The oldest event at the last look, and when this process first saw it there, by `performance.now()`. */
  private oldest: { seq: string | null; since: number } = { seq: null, since: 0 };
  /** When the last look has succeeded, by `performance.now()`, and the age that it has found. */
  private looked = { at: performance.now(), seconds: 0 };
  /** Why the looks since then have failed. */
  private obstacle?: string;
  private timer?: NodeJS.Timeout;
  private sweeping: Promise<void> = Promise.resolve();
  private readonly listener: OutboxListener;
  private readonly stored: StoredEvents;
  private readonly later = new LaterLook(LOOK_AGAIN_MS, () => this.wake());
  private readonly memory = new EventMemory(() => this.later.want());

  constructor(
    dataSource: DataSource,
    private readonly options: OutboxOptions,
  ) {
    this.stored = new StoredEvents(dataSource, options, () => this.wake());
    this.listener = new OutboxListener(dataSource, options.wokenBy, () => this.wake());
  }

  /** Begins with what is there already. */
  start(): void {
    outboxEventsLimit.set(this.options.maxEvents ?? MAX_EVENTS);
    this.timer = setInterval(() => void this.sweepNext(), SWEEP_MS).unref();
    void this.sweepNext();
  }

  /** Looks at the table: to be called after each commit that may have left events there. Costs nothing while a batch is on its way. */
  wake(): void {
    this.woken = true;
    this.go();
  }

  /**
   * Publishes events of a committed statement without reading them back. Events that this process does not get rid of in time are still in the table.
   *
   * @param since `performance.now()` before the statement
   */
  add(events: readonly OutboxEvent[], since: number): void {
    this.memory.add(events, since);
    this.go();
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
    this.stored.stop();
    this.closing.abort();
    await this.running;
    await this.sweeping;
    await this.listener.stop();
    if (this.failed === 0) {
      if (this.memory.size > 0) await this.publishRemembered().catch(() => undefined);
      else if (this.woken) await this.publishStored().catch(() => undefined);
    }
    this.later.stop();
  }

  private go(): void {
    if (this.closing.signal.aborted || !this.hasWork()) return;
    this.running ??= outside(() => this.run());
  }

  private hasWork(): boolean {
    return this.woken || this.memory.size > 0;
  }

  private async run(): Promise<void> {
    const { signal } = this.closing;
    // All statements that commit in this turn of the event loop share the batch.
    await immediate();
    while (this.hasWork() && !signal.aborted) {
      try {
        const remembered = await this.publishRemembered();
        const stored = this.woken ? await this.publishStored() : NOTHING;
        const events = remembered.events + stored.events;
        // Nothing to publish says nothing about the broker.
        if (events > 0) this.failed = 0;
        if (this.full) await this.sweepNext();
        const [afterFew, afterMany] = GATHERING_MS;
        if (!remembered.full && !stored.full && !signal.aborted)
          await sleep(events < FEW ? afterFew : afterMany, undefined, { signal }).catch(() => undefined);
      } catch (error) {
        await this.backOff(error as Error);
      }
    }
    this.running = undefined;
  }

  private async backOff(error: Error): Promise<void> {
    outboxFailures.inc();
    if (this.failed++ === 0) this.logger.warn({ msg: 'events stay in the outbox for now', reason: whyOf(error) });
    const { signal } = this.closing;
    await sleep(waitAfter(this.failed), undefined, { signal }).catch(() => undefined);
  }

  /** Publishes a batch from memory. An event that fails, or is refused, is left to the table. */
  private async publishRemembered(): Promise<Passed> {
    let events = 0;
    try {
      await this.memory.pass(LIMITS.events, async (batch) => {
        const again = (await this.options.publish(batch)) ?? new Set<string>();
        const done = batch.filter(({ id }) => !again.has(id)).map(({ seq }) => seq);
        outboxPublished.inc(done.length);
        if (again.size > 0) {
          outboxFailures.inc();
          this.later.want();
        }
        if (done.length > 0) await this.stored.delete(done);
        events = batch.length;
      });
    } catch (error) {
      this.later.want();
      throw error;
    }
    return { events, full: events === LIMITS.events };
  }

  private async publishStored(): Promise<Passed> {
    this.woken = false;
    try {
      const passed = await this.stored.publish();
      this.woken ||= passed.full;
      return passed;
    } catch (error) {
      this.woken = true;
      throw error;
    }
  }

  /** One after the other: two at once would listen on two connections. */
  private sweepNext(): Promise<void> {
    return (this.sweeping = this.sweeping.then(() => this.sweep()));
  }

  private async sweep(): Promise<void> {
    const { maxEvents = MAX_EVENTS, fromMemory } = this.options;
    try {
      const [found] = await (
        await this.listener.connection()
      ).query<{ seq: string | null; seconds: number; events: number }[]>(
        `SELECT seq, coalesce(extract(epoch FROM clock_timestamp() - occurred_at), 0)::float8 AS seconds, events
         FROM (SELECT count(*)::int AS events FROM (SELECT FROM outbox LIMIT $1) bounded) counted
         LEFT JOIN (SELECT seq, occurred_at FROM outbox ORDER BY seq LIMIT 1) first ON true`,
        [maxEvents],
      );
      if (!found) return;
      // After the clock of the database has gone back the oldest event is of the future: younger ones must not wait for it.
      const seconds = Math.max(0, found.seconds);
      const now = performance.now();
      if (found.seq !== this.oldest.seq) this.oldest = { seq: found.seq, since: now };
      this.looked = { at: now, seconds: found.seq === null ? 0 : Math.max(seconds, (now - this.oldest.since) / 1000) };
      this.obstacle = undefined;
      outboxOldestSeconds.set(this.looked.seconds);
      outboxEvents.set(found.events);
      const full = found.events === maxEvents;
      if (full && !this.full) this.logger.error({ msg: 'the outbox is full: commands wait', events: maxEvents });
      this.full = full;
      if (found.events === 0) return;
      const oldestMs = seconds * 1000;
      const due = !fromMemory || oldestMs >= EVENT_MEMORY_MS;
      // The look that begins takes the oldest: the later one is for the others.
      if (fromMemory) this.later.want(due ? 0 : oldestMs);
      if (due) this.wake();
    } catch (error) {
      this.notLooked(error as Error);
    }
  }

  /** While statements fail, as for a lock, an event may be waiting since the last look, and nobody would know. */
  private notLooked(error: Error): void {
    const reason = whyOf(error);
    if (reason !== this.obstacle) this.logger.warn({ msg: 'the outbox could not be looked at', reason });
    this.obstacle = reason;
    // Readiness and the metrics of the pool tell of a database that is away, and of one whose connections are all in use.
    if (sqlState(error) === '' || isDatabaseAway(error)) return;
    outboxOldestSeconds.set(this.looked.seconds + (performance.now() - this.looked.at) / 1000);
  }
}
