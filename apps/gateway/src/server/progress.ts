import type { Socket } from 'node:net';
import type { ServerLimits } from './server-limits';

/** Of the handle beneath a socket: what Node's own idle timeout looks at, too. */
interface Handle {
  /** Bytes handed to the system, or waiting for it. */
  bytesWritten: number;
  /** Of those, bytes that wait: the client has to read first. */
  writeQueueSize: number;
}

/** How one client takes what is sent to it. Has to be looked at regularly. */
export class Progress {
  private waitingSince?: number;
  private movedAt = 0;
  private takenBefore = 0;
  private taken = 0;

  constructor(private readonly socket: Socket) {}

  /** Whether something that was sent had not been taken at the last look. */
  get isWaiting(): boolean {
    return this.waitingSince !== undefined;
  }

  /**
   * Whether the client may go on: something was taken lately, and, since all was taken for the last time, the least that a client has to
   * take in a second.
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
