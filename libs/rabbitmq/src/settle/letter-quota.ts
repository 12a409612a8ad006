import { Logger } from '@nestjs/common';
import { RateLimiterMemory } from 'rate-limiter-flexible';
import { STUB_BYTES, type Delivery } from '../delivery/delivery';

const HOUR_S = 3600;
/** For each account, in one process. A refused queue holds 10 times the messages and 32 times the bytes. */
const LETTERS_AN_HOUR = 10_000;
const BYTES_AN_HOUR = 8 * 1024 * 1024;
const LOG_EVERY_MS = 60_000;
/** Most accounts in one round of log lines. */
const MAX_LINES = 100;

/**
 * Limits the refused dead letters that are kept for each publisher, so that one publisher cannot push out the dead letters of another. Dead
 * letters above the limit are counted and dropped, and the log names their publisher.
 */
export class LetterQuota {
  private readonly logger = new Logger('RabbitMQ');
  private readonly letters = new RateLimiterMemory({ points: LETTERS_AN_HOUR, duration: HOUR_S, keyPrefix: 'letters' });
  private readonly bytes = new RateLimiterMemory({ points: BYTES_AN_HOUR, duration: HOUR_S, keyPrefix: 'bytes' });
  private readonly dropped = new Map<string, number>();

  /** Counts a dead letter. @returns false when its publisher is above the limit */
  async admits(delivery: Delivery, stub: boolean): Promise<boolean> {
    const publisher = publisherOf(delivery);
    const bytes = stub ? Math.min(STUB_BYTES, delivery.message.content.length) : delivery.message.content.length;
    try {
      await this.letters.consume(publisher);
      if (bytes > 0) await this.bytes.consume(publisher, bytes);
      return true;
    } catch (refused) {
      if (refused instanceof Error) throw refused;
      this.count(publisher);
      return false;
    }
  }

  private count(publisher: string): void {
    if (this.dropped.size === 0) setTimeout(() => this.report(), LOG_EVERY_MS).unref();
    const counted = this.dropped.get(publisher);
    if (counted !== undefined || this.dropped.size < MAX_LINES) this.dropped.set(publisher, (counted ?? 0) + 1);
  }

  private report(): void {
    for (const [publisher, letters] of this.dropped) {
      this.logger.warn({
        msg: 'refused commands of a publisher are dropped: it has exceeded the hourly limit of kept ones',
        publisher,
        letters,
      });
    }
    this.dropped.clear();
  }
}

/** The broker has checked the account. Publishers without user_id share one quota for each lane. */
export const publisherOf = ({ context, exchange }: Delivery): string =>
  context.userId ?? `without user_id, by exchange ${exchange}`;
