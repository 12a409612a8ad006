import { setTimeout as sleep } from 'node:timers/promises';
import { Logger } from '@nestjs/common';
import type { Counter } from 'prom-client';
import type { DataSource } from 'typeorm';
import { isDatabaseAway, reasonOf } from '../errors';
import { retentionFailures } from '../metrics';
import { nextSize } from './step-sizes';

const EVERY_MS = 10 * 60 * 1000;
/** Least and most rows deleted by one statement. Each may have a thousand others with it, and a statement has two seconds. */
const [LEAST, MOST] = [1, 1000];
const FIRST = 64;

export interface Deleted {
  deleted: number;
  /** Whether another statement would find more. */
  more: boolean;
}

/**
 * The statement that deletes the first $1 rows in the order of `by`. Several processes may run it at once: each takes different rows.
 *
 * @param key of the rows. By its ctid a row that was updated just before is counted and left for the next time
 */
export const deleteOldest = (table: string, condition: string, by: string, key = 'ctid') => `
  WITH old AS MATERIALIZED (
    SELECT ${key} FROM ${table} WHERE ${condition} ORDER BY ${by} LIMIT $1 FOR UPDATE SKIP LOCKED
  ), deleted AS (
    DELETE FROM ${table} WHERE ${key} = ANY (ARRAY(SELECT ${key} FROM old))
  )
  SELECT count(*)::int AS deleted, count(*) = $1 AS more FROM old`;

/** Runs a statement that answers with one row, what it has deleted. */
export async function deleteBy(dataSource: DataSource, statement: string, values?: unknown[]): Promise<Deleted> {
  const [deleted] = await dataSource.query<[Deleted]>(statement, values);
  return deleted;
}

/** One kind of rows that have become old. */
export interface OldRows {
  /** Their name in the log. */
  name: string;
  /** Runs one statement. Several processes may do so at once. `most` is its most rows. */
  deleteSome: (most: number) => Promise<Deleted>;
  counter?: Counter;
}

/** Deletes old rows every ten minutes, a few at a time, so that it does not delay other statements. */
export class DeletionLoop {
  private readonly logger = new Logger('Retention');
  private readonly closing = new AbortController();
  private timer?: NodeJS.Timeout;
  private running: Promise<void> = Promise.resolve();

  /** @param kinds are deleted in this order */
  constructor(private readonly kinds: readonly OldRows[]) {}

  /** Begins with what is there already. */
  start(): void {
    const next = () => (this.running = this.running.then(() => this.run()));
    this.timer = setInterval(() => void next(), EVERY_MS).unref();
    void next();
  }

  /** Resolves after the running statement. */
  async stop(): Promise<void> {
    clearInterval(this.timer);
    this.closing.abort();
    await this.running;
  }

  private async run(): Promise<void> {
    for (const kind of this.kinds) if (!(await this.repeat(kind))) return;
  }

  /**
   * Repeats a statement until it finds fewer rows than it may delete.
   *
   * @returns false when the database is away
   */
  private async repeat({ name, deleteSome, counter }: OldRows): Promise<boolean> {
    const { signal } = this.closing;
    let most = FIRST;
    let total = 0;
    let away = false;
    while (!signal.aborted) {
      const from = performance.now();
      let failed = false;
      try {
        const { deleted, more } = await deleteSome(most);
        counter?.inc(deleted);
        total += deleted;
        if (!more) break;
      } catch (error) {
        failed = true;
        this.logger.warn({ msg: 'old rows could not be deleted', of: name, reason: reasonOf(error), rows: most });
        away = isDatabaseAway(error);
        if (most === LEAST || away) {
          retentionFailures.inc();
          break;
        }
      }
      const tookMs = performance.now() - from;
      most = nextSize(most, failed ? Infinity : tookMs, LEAST, MOST);
      // Use at most half of the time of one connection.
      await sleep(tookMs, undefined, { signal }).catch(() => undefined);
    }
    if (total > 0) this.logger.log({ msg: 'old rows were deleted', of: name, rows: total });
    return !away;
  }
}
