import type { ConfirmChannel } from 'amqplib';
import { unavailable } from './call-errors';
import type { RabbitChannel } from '../connection/channel';
import type { Request } from '../messages/message-properties';
import type { PendingCalls } from './pending-calls';

/** How long calls wait for a channel after the connection was lost: long enough to reach another node of the broker. */
const FAILOVER_MS = 900;
/**
 * The same from the beginning of an alarm of the broker. RabbitMQ looks at its memory once a second, so an alarm that large messages have caused for
 * a moment lasts for one second or two.
 */
const ALARM_MS = 2500;

/** Calls that wait for a channel that takes messages: nothing of them was written. */
export class WaitingCalls {
  /** Until when they wait, in milliseconds of `performance.now()`. */
  private until = performance.now() + FAILOVER_MS;
  private isAlarmed = false;

  constructor(
    private readonly channel: RabbitChannel<ConfirmChannel>,
    private readonly calls: PendingCalls,
    private readonly begin: (request: Request) => void,
  ) {}

  /** Begins a call when the channel takes messages, or when it has waited long enough. */
  async add(request: Request): Promise<void> {
    const { correlationId, deadline } = request;
    await this.channel.whenReady(Math.min(deadline, this.until) - performance.now());
    // It was given up meanwhile.
    if (!this.calls.has(correlationId)) return;
    if (deadline > performance.now()) this.begin(request);
    else this.calls.reject(correlationId, unavailable('there was no connection in time'));
  }

  /** Waits as long as the calls. @returns false when the channel takes no messages */
  untilReady(): Promise<boolean> {
    return this.channel.whenReady(this.until - performance.now());
  }

  /** The channel was lost. */
  lost(): void {
    this.until = performance.now() + FAILOVER_MS;
  }

  /** Repeated messages of the broker do not prolong the wait. @returns whether an alarm has begun or ended */
  alarm(isAlarmed: boolean): boolean {
    if (isAlarmed === this.isAlarmed) return false;
    this.isAlarmed = isAlarmed;
    if (isAlarmed) this.until = performance.now() + ALARM_MS;
    return true;
  }

  /** Whether calls wait for the end of an alarm. */
  get isAlarm(): boolean {
    return this.isAlarmed && performance.now() < this.until;
  }
}
