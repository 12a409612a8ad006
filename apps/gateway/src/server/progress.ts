import type { Socket } from 'node:net';
import type { ServerLimits } from './server-limits';

/** Counters of a socket's handle, which Node's own idle timeout uses too. */
interface Handle {
  /** Bytes passed to the operating system or queued for it. */
  bytesWritten: number;
  /** Queued bytes among them: the client must read first. */
  writeQueueSize: number;
}

/** Measures how fast a client reads its answers. Call {@link isEnough} regularly. */
export class Progress {
  private waitingSince?: number;
  private movedAt = 0;
  private takenBefore = 0;
  private taken = 0;

  constructor(private readonly socket: Socket) {}

  /** Whether sent bytes were unread at the last check. */
  get isWaiting(): boolean {
    return this.waitingSince !== undefined;
  }

  /**
   * Whether the connection may stay open: the client has read something within the timeout, and has read at the minimum rate since the last time
   * that everything was read.
   *
   * @param now monotonic milliseconds
   */
  isEnough(now: number, limits: Pick<ServerLimits, 'unreadTimeoutMs' | 'leastBytesPerSecond'>): boolean {
    const handle = (this.socket as unknown as { _handle?: Handle | null })._handle;
    if (this.socket.writableLength === 0 || !handle) {
      this.waitingSince = undefined;
      return true;
    }
    const taken = handle.bytesWritten - handle.writeQueueSize;
    if (this.waitingSince === undefined) {
      this.waitingSince = this.movedAt = now;
      this.taken = this.takenBefore = taken;
    } else if (taken > this.taken) {
      this.taken = taken;
      this.movedAt = now;
    }
    const leastTaken = ((now - this.waitingSince - limits.unreadTimeoutMs) / 1000) * limits.leastBytesPerSecond;
    return now - this.movedAt < limits.unreadTimeoutMs && taken - this.takenBefore >= leastTaken;
  }
}
