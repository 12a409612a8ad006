import { setTimeout as sleep } from 'node:timers/promises';
import { Logger } from '@nestjs/common';
import type { DataSource } from 'typeorm';
import { isDatabaseAway } from '@app/postgres/errors';
import { deleteOlderThan, deleteReadingsOlderThan, forgetErasures, freeIdsOfDeleted } from '../db/retention.repository';
import { retentionDeleted, retentionFailures } from '../metrics';

const EVERY_MS = 10 * 60 * 1000;
/** Least and most notifications deleted by one statement. Each may have a thousand recipients, and a statement has two seconds. */
const [LEAST, MOST] = [1, 1000];
const FIRST = 64;
/** Target time of a statement, in milliseconds. A longer one halves the number for the next statement, a shorter one doubles it. */
const GOOD_MS = 250;

/**
 * Deletes notifications that are older than `RETENTION_DAYS` with their read state, frees the ids of those that were deleted more than 25 hours ago,
 * and forgets erasures after a week. A few at a time, so that it does not delay other statements.
 */
export class Retention {
  private readonly logger = new Logger('Retention');
  private readonly closing = new AbortController();
  private timer?: NodeJS.Timeout;
  private running: Promise<void> = Promise.resolve();

  /** @param days maximum age; 0 keeps all notifications */
  constructor(
    private readonly dataSource: DataSource,
    private readonly days: number,
  ) {}

  start(): void {
    const next = () => (this.running = this.running.then(() => this.run()));
    this.timer = setInterval(() => void next(), EVERY_MS).unref();
    void next();
  }

  async stop(): Promise<void> {
    clearInterval(this.timer);
    this.closing.abort();
    await this.running;
  }

  private async run(): Promise<void> {
    await this.repeat((most) => freeIdsOfDeleted(this.dataSource, most));
    await this.repeat((most) => forgetErasures(this.dataSource, most));
    if (this.days === 0) return;
    const total = await this.repeat(async (most) => {
      const count = await deleteOlderThan(this.dataSource, this.days, most);
      retentionDeleted.inc(count);
      return count;
    });
    await this.repeat((most) => deleteReadingsOlderThan(this.dataSource, this.days, most));
    if (total > 0) this.logger.log({ msg: 'old notifications were deleted', notifications: total });
  }

  /**
   * Repeats a statement until it finds fewer rows than it may delete.
   *
   * @returns number of deleted rows
   */
  private async repeat(deleteSome: (most: number) => Promise<number>): Promise<number> {
    const { signal } = this.closing;
    let most = FIRST;
    let total = 0;
    while (!signal.aborted) {
      const from = performance.now();
      try {
        const count = await deleteSome(most);
        total += count;
        if (count < most) break;
      } catch (error) {
        retentionFailures.inc();
        this.logger.warn({
          msg: 'old notifications could not be deleted',
          reason: (error as Error).message,
          notifications: most,
        });
        if (most === LEAST || isDatabaseAway(error)) break;
      }
      const tookMs = performance.now() - from;
      most = Math.max(LEAST, Math.min(MOST, tookMs > GOOD_MS ? most >> 1 : most << 1));
      // Use at most half of the time of one connection.
      await sleep(tookMs, undefined, { signal }).catch(() => undefined);
    }
    return total;
  }
}
