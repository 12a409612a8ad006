import { Logger } from '@nestjs/common';
import type { PoolClient } from 'pg';
import type { DataSource } from 'typeorm';
import { GENERIC_PLANS } from '../connections/data-source';
import { EVENT_MEMORY_MS } from './event-memory';
import { KeptEvents } from './kept-events';
import type { OutboxEvent, OutboxLimits, OutboxOptions } from './outbox-event';
import { outboxFailures, outboxPublished } from '../metrics';
import { queryPrepared } from '../connections/query-prepared';

/** A batch. */
export interface Passed {
  events: number;
  /** Whether there may be more of them. */
  full: boolean;
}
export const NOTHING: Passed = { events: 0, full: false };

export const LIMITS = { events: 200, bytes: 4 * 1024 * 1024 };
/** Refused events that come back for a batch. New ones find room beside them, and the next ones come back without a look between. */
const MOST_BACK = 150;
/** Of so many full batches API keys take turns in one, which has to look at so many events for it. */
const TURNS = { every: 4, among: 10_000 };
/** A crash that loses the deletion has the events published again, so it need not wait for the disk. Planning for each few events costs more than they. */
const SETTINGS = Object.entries({ synchronous_commit: 'off', ...GENERIC_PLANS });
const BEGIN = ['BEGIN', ...SETTINGS.map(([name, value]) => `SET LOCAL ${name} = ${value}`)].join('; ');

/** One autocommitted statement: the setting holds until its commit. The SELECT is not left out, as an unused CTE would be. */
const DELETE = {
  name: 'delete-published-events',
  text: `WITH deleted AS (DELETE FROM outbox WHERE seq = ANY ($1::bigint[])) SELECT set_config('synchronous_commit', 'off', true)`,
};

/** The table `outbox`, from which any process publishes what another has left. */
export class StoredEvents {
  private readonly logger = new Logger('Outbox');
  private readonly kept: KeptEvents;
  private readonly limits: OutboxLimits;
  /** Batches since there were no more events. */
  private batches = 0;

  /** @param waited called when refused events may be tried again */
  constructor(
    private readonly dataSource: DataSource,
    private readonly options: OutboxOptions,
    waited: () => void,
  ) {
    this.kept = new KeptEvents(waited);
    this.limits = { ...LIMITS, ageMs: options.fromMemory ? EVENT_MEMORY_MS : 0 };
  }

  /** Publishes a batch from the table, in the transaction that deletes it. */
  async publish(): Promise<Passed> {
    const since = performance.now();
    const runner = this.dataSource.createQueryRunner();
    try {
      const client = (await runner.connect()) as PoolClient;
      await client.query(BEGIN);
      try {
        // The second one of a long table already. It counts also when it fails: plain ones follow, which read less.
        const inTurns = this.batches % TURNS.every === 1;
        if (inTurns) this.batches++;
        const limits = inTurns ? { ...this.limits, turnsAmong: TURNS.among } : this.limits;
        const { events, dropped = [], more } = await this.options.take(client, limits, this.kept.all);
        // The database has ended the transaction by now, and another process may have published them: what this one knows may be out of date.
        if (performance.now() - since > EVENT_MEMORY_MS) throw new Error('the process stood still');
        const again = events.length > 0 ? await this.options.publish(events) : undefined;
        if (again && again.size > 0) await this.keep(client, { events, again, dropped });
        else {
          await client.query('COMMIT');
          outboxPublished.inc(events.length);
        }
        // Others may have locked those whose turn it was.
        const full = more || inTurns;
        if (!inTurns) this.batches = more ? this.batches + 1 : 0;
        const back = this.kept.comeBack(full, MOST_BACK);
        return { events: events.length, full: full || back };
      } catch (error) {
        // A lost connection has rolled back by itself, and released the runner.
        if (!runner.isReleased) await client.query('ROLLBACK').catch(() => undefined);
        throw error;
      }
    } finally {
      await runner.release();
    }
  }

  /** Deletes events that were published from memory. */
  async delete(seqs: readonly string[]): Promise<void> {
    await queryPrepared(this.dataSource, DELETE, [seqs]);
  }

  stop(): void {
    this.kept.stop();
  }

  /** Deletes what is published or dropped of a batch from the table, and leaves the rest out for a while. */
  private async keep(
    client: PoolClient,
    { events, again, dropped }: { events: readonly OutboxEvent[]; again: ReadonlySet<string>; dropped: readonly string[] },
  ): Promise<void> {
    await client.query('ROLLBACK');
    const round = this.kept.add(events.filter(({ id }) => again.has(id)).map(({ seq }) => seq));
    if (round !== undefined) outboxFailures.inc();
    if (round === 1) this.logger.warn({ msg: 'events stay in the outbox for now', reason: 'a listener refuses them' });
    const done = events.filter(({ id }) => !again.has(id)).map(({ seq }) => seq);
    const gone = [...done, ...dropped];
    if (gone.length > 0) await client.query('DELETE FROM outbox WHERE seq = ANY ($1::bigint[])', [gone]);
    outboxPublished.inc(done.length);
  }
}
