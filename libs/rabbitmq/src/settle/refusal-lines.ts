import { Logger } from '@nestjs/common';
import { about, type Delivery } from '../delivery/delivery';
import { publisherOf } from './letter-quota';

const LINES = 20;
const IN_MS = 60_000;

/**
 * Log lines about refused messages that leave no letter. A publisher has 20 a minute, so that its mistakes do not hide the lines of others. One
 * line then counts the rest.
 */
export class RefusalLines {
  private readonly logger = new Logger('RabbitMQ');
  /** By publisher. Bounded, because the broker vouches for the accounts. */
  private readonly refused = new Map<string, number>();

  write(delivery: Delivery, reason: string): void {
    if (this.refused.size === 0) setTimeout(() => this.report(), IN_MS).unref();
    const publisher = publisherOf(delivery);
    const refused = (this.refused.get(publisher) ?? 0) + 1;
    this.refused.set(publisher, refused);
    if (refused <= LINES) this.logger.warn({ msg: 'refused a message', reason, ...about(delivery) });
  }

  private report(): void {
    for (const [publisher, refused] of this.refused)
      if (refused > LINES)
        this.logger.warn({ msg: 'refused more messages of a publisher', publisher, messages: refused - LINES });
    this.refused.clear();
  }
}
