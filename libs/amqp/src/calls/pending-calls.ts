import { setTimeout as sleep } from 'node:timers/promises';
import type { Channel } from 'amqplib';
import { InFlight } from '../publishing/in-flight';
import type { ReceivedReply } from '../messages/reply-format';

const LOOK_EVERY_MS = 100;

interface PendingCall {
  resolve(reply: ReceivedReply): void;
  reject(error: Error): void;
  timer: NodeJS.Timeout;
  /** The channels that it was written to. */
  channels: readonly Channel[];
}

const NONE: readonly Channel[] = [];

/** Calls waiting for their reply, by correlation id. */
export class PendingCalls {
  private readonly calls = new InFlight<PendingCall>();
  private onEmpty?: () => void;

  get size(): number {
    return this.calls.size;
  }

  /**
   * Waits for the reply.
   *
   * @param timeoutMs each call has its own timer; that is cheap, because Node keeps timers of equal length in one list
   * @param onTimeout creates the error for a call without a reply in time
   */
  wait(correlationId: string, timeoutMs: number, onTimeout: () => Error): Promise<ReceivedReply> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => this.reject(correlationId, onTimeout()), timeoutMs);
      this.calls.set(correlationId, { resolve, reject, timer, channels: NONE });
    });
  }

  /** @returns false when no call waits for this reply any more */
  resolve(correlationId: string, reply: ReceivedReply): boolean {
    const call = this.take(correlationId);
    call?.resolve(reply);
    return call !== undefined;
  }

  reject(correlationId: string, error: Error): void {
    this.take(correlationId)?.reject(error);
  }

  rejectAll(makeError: (correlationId: string) => Error): void {
    for (const correlationId of this.calls.keys()) this.reject(correlationId, makeError(correlationId));
  }

  /** Whether the call waits for its reply. */
  has(correlationId: string): boolean {
    return this.calls.get(correlationId) !== undefined;
  }

  /** Whether nothing of the call was written. It never will be, when the call is given up now. */
  isUnwritten(correlationId: string): boolean {
    return this.calls.get(correlationId)?.channels.length === 0;
  }

  /** Calls are about to be written to a channel. */
  written(calls: readonly { correlationId: string }[], channel: Channel | undefined): void {
    if (!channel) return;
    for (const { correlationId } of calls) {
      const call = this.calls.get(correlationId);
      if (call && !call.channels.includes(channel)) call.channels = [...call.channels, channel];
    }
  }

  /** Correlation ids of the calls that were written to this channel. */
  writtenTo(channel: Channel): string[] {
    return this.calls.keys().filter((correlationId) => this.calls.get(correlationId)?.channels.includes(channel));
  }

  /** Resolves when no call is pending. */
  async whenEmpty(): Promise<void> {
    if (this.calls.size > 0) await new Promise<void>((resolve) => (this.onEmpty = resolve));
  }

  /** Resolves when the given calls have ended. */
  async endOf(correlationIds: readonly string[]): Promise<void> {
    while (correlationIds.some((correlationId) => this.has(correlationId))) await sleep(LOOK_EVERY_MS, undefined, { ref: false });
  }

  private take(correlationId: string): PendingCall | undefined {
    const call = this.calls.take(correlationId);
    if (!call) return undefined;
    clearTimeout(call.timer);
    if (this.calls.size === 0) this.onEmpty?.();
    return call;
  }
}
