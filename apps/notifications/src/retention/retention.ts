import { setTimeout as sleep } from 'node:timers/promises';
import { Logger } from '@nestjs/common';
import { Counter } from 'prom-client';
import type { DataSource } from 'typeorm';
import { isDatabaseAway } from '@app/postgres/errors';
import { deleteOlderThan } from '../db/retention.repository';

const EVERY_MS = 10 * 60 * 1000;
/** Notifications deleted by one statement. One of them may have a thousand recipients, and a statement has two seconds. */
const [LEAST, MOST] = [1, 1000];
const FIRST = 64;
/** A statement that takes longer is followed by one for half as many, a shorter one by one for twice as many. */
const GOOD_MS = 250;

const deleted = new Counter({ name: 'retention_deleted_total', help: 'Notifications deleted because of their age.' });
const failures = new Counter({
  name: 'retention_failures_total',
  help: 'Times that old notifications could not be deleted; tried again within ten minutes.',
});

/** Deletes notifications that are older than `RETENTION_DAYS`, a few at a time, so that nobody waits for it. */
export class Retention {
  private readonly logger = new Logger('Retention');
  private readonly closing = new AbortController();
  private timer?: NodeJS.Timeout;
  private running: Promise<void> = Promise.resolve();

  /** @param days 0: everything is kept */
  constructor(
    private readonly dataSource: DataSource,
    private readonly days: number,
  ) {}

  start(): void {
    if (this.days === 0) return;
    const next = () => (this.running = this.running.then(() => this.deleteOld()));
    this.timer = setInterval(() => void next(), EVERY_MS).unref();
    void next();
  }

  async stop(): Promise<void> {
    clearInterval(this.timer);
    this.closing.abort();
    await this.running;
  }

  private async deleteOld(): Promise<void> {
    const { signal } = this.closing;
    let most = FIRST;
    let total = 0;
    while (!signal.aborted) {
      const from = performance.now();
      try {
        const count = await deleteOlderThan(this.dataSource, this.days, most);
        deleted.inc(count);
        total += count;
        if (count < most) break;
      } catch (error) {
        failures.inc();
        this.logger.warn({
          msg: 'old notifications could not be deleted',
          reason: (error as Error).message,
          notifications: most,
        });
        if (most === LEAST || isDatabaseAway(error)) break;
      }
      const tookMs = performance.now() - from;
      most = Math.max(LEAST, Math.min(MOST, tookMs > GOOD_MS ? most >> 1 : most << 1));
      // Half of one connection's time, at most.
      await sleep(tookMs, undefined, { signal }).catch(() => undefined);
    }
    if (total > 0) this.logger.log({ msg: 'old notifications were deleted', notifications: total });
  }
}
