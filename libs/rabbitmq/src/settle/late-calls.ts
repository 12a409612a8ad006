import { Logger } from '@nestjs/common';
import { PASSED } from '@app/amqp/calls/call-channels';
import { about, type Delivery } from '../delivery/delivery';

const EVERY_MS = 60_000;
const HINT = 'The service or its database is slow. When it is minutes, a clock is wrong: docs/runbooks/CallsFailing.md.';

/** One log line a minute about calls that came after their deadline, with the latest of them. Their callers have given up, and nobody else knows. */
export class LateCalls {
  private readonly logger = new Logger('RabbitMQ');
  private calls = 0;
  private mostMs = 0;
  private latest?: object;

  count(delivery: Delivery): void {
    // The first message of a caller's channel.
    if (delivery.context.deadline === PASSED) return;
    if (this.calls === 0) setTimeout(() => this.report(), EVERY_MS).unref();
    this.calls++;
    const lateMs = Date.now() - (delivery.context.deadline ?? Infinity);
    if (lateMs <= this.mostMs) return;
    this.mostMs = lateMs;
    this.latest = about(delivery);
  }

  private report(): void {
    const { calls, mostMs: lateMs, latest } = this;
    this.logger.warn({ msg: 'calls came after their deadline, and were not carried out', calls, lateMs, ...latest, hint: HINT });
    this.calls = this.mostMs = 0;
    this.latest = undefined;
  }
}
