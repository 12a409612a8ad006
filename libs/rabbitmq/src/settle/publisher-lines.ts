import { Logger } from '@nestjs/common';
import { about, type Delivery } from '../delivery/delivery';
import { publisherOf } from './letter-quota';

const LINES = 20;
const IN_MS = 60_000;

/**
 * Log lines of one kind about deliveries. A publisher has 20 a minute, so that its own do not hide the lines of others. One line then counts the
 * rest.
 */
export class PublisherLines {
  private readonly logger = new Logger('RabbitMQ');
  /** By publisher. Bounded, because the broker vouches for the accounts. */
  private readonly counts = new Map<string, number>();

  /**
   * @param rest the message of the line that counts
   * @param level of the others
   */
  constructor(
    private readonly msg: string,
    private readonly rest: string,
    private readonly level: 'warn' | 'error' = 'warn',
  ) {}

  /** @param why fields beside those of the delivery */
  write(delivery: Delivery, why: object): void {
    if (this.counts.size === 0) setTimeout(() => this.report(), IN_MS).unref();
    const publisher = publisherOf(delivery);
    const count = (this.counts.get(publisher) ?? 0) + 1;
    this.counts.set(publisher, count);
    if (count <= LINES) this.logger[this.level]({ msg: this.msg, ...why, ...about(delivery) });
  }

  private report(): void {
    for (const [publisher, count] of this.counts)
      if (count > LINES) this.logger.warn({ msg: this.rest, publisher, messages: count - LINES });
    this.counts.clear();
  }
}
