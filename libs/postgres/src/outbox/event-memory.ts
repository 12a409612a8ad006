import { outboxMemoryBytes, outboxMemoryBytesLimit } from '../metrics';
import type { OutboxEvent } from './outbox-event';

/**
 * Longest time from the statement that stores an event to its publication from memory, in milliseconds. So long after its commit no process begins
 * to publish what it remembers: older events are only read from the table. A deletion that must not be followed by an event has to wait for this, and
 * for a publication.
 */
export const EVENT_MEMORY_MS = 5000;

/** Most UTF-8 bytes of `data` that one process remembers, those that are being published included. */
export const EVENT_MEMORY_BYTES = 4 * 1024 * 1024;

interface Remembered {
  event: OutboxEvent;
  bytes: number;
  until: number;
}

/** Stored events that their process publishes without reading them back. An event that is forgotten here is still in the table. */
export class EventMemory {
  private readonly waiting: Remembered[] = [];
  private bytes = 0;

  /** @param left called when events are left to the table, because there is no room for them or they are too old */
  constructor(private readonly left: () => void) {
    outboxMemoryBytesLimit.set(EVENT_MEMORY_BYTES);
  }

  /** Number of events that wait. */
  get size(): number {
    return this.waiting.length;
  }

  /** @param since `performance.now()` before the statement that stored them */
  add(events: readonly OutboxEvent[], since: number): void {
    let isLeft = false;
    for (const event of events) {
      const bytes = Buffer.byteLength(event.data);
      // A large one must not leave the small ones behind it to the table, where they wait for seconds.
      if (this.bytes + bytes > EVENT_MEMORY_BYTES) {
        isLeft = true;
        continue;
      }
      this.change(bytes);
      this.waiting.push({ event, bytes, until: since + EVENT_MEMORY_MS });
    }
    if (isLeft) this.left();
  }

  /**
   * Passes the oldest events to `publish`, unless there are none, and forgets them afterwards, also when it fails.
   *
   * @param most most events of one call
   */
  async pass(most: number, publish: (events: readonly OutboxEvent[]) => Promise<void>): Promise<void> {
    const batch = this.waiting.splice(0, most);
    const now = performance.now();
    const young = batch.filter(({ until }) => now < until);
    if (young.length < batch.length) this.left();
    try {
      if (young.length > 0) await publish(young.map(({ event }) => event));
    } finally {
      this.change(-batch.reduce((sum, { bytes }) => sum + bytes, 0));
    }
  }

  private change(bytes: number): void {
    this.bytes += bytes;
    outboxMemoryBytes.set(this.bytes);
  }
}
