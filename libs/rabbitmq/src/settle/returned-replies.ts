import type { Message } from 'amqplib';
import { LRUCache } from 'lru-cache';
import type { Properties } from '@app/amqp/messages/write-message';

/** Waits before a returned reply is written again, in milliseconds. A caller that is gone costs as many more messages. */
const WAITS_MS = [100, 200, 400];
/** A larger reply is not written again: it is a page, which its caller asks for again, and a foreign caller may be gone for good. */
const LARGE_BYTES = 64 * 1024;
/** Bytes of replies that wait. Further ones are dropped. */
const MOST_BYTES = 8 * 1024 * 1024;
/** Waiting replies to callers of other services. Any publisher may name the queue of nobody in each message, and a reply would cost four. */
const MOST_FOREIGN = 100;
/** Remembered reply queues of this system. Each channel of a caller has one. */
const MAX_OWN = 1000;
/** Longest wait for a channel that the broker takes messages from, in milliseconds: a call of the gateway takes no longer. */
const CHANNEL_MS = 60_000;
/** Header of a reply that was returned: how often. */
const RETURNS = 'x-returns';

/**
 * Writes replies again that the broker returned because no queue was bound. With Khepri a node learns of the bindings of other nodes a
 * moment later, and up to a second later while it is drained: a caller that has just connected to another node would get no reply.
 */
export class ReturnedReplies {
  private bytes = 0;
  private foreign = 0;
  private readonly own = new LRUCache<string, true>({ max: MAX_OWN });

  /**
   * @param write publishes a reply to a queue; rejects while its channel is closing
   * @param whenReady waits until it can be written; false when it cannot within some milliseconds
   */
  constructor(
    private readonly write: (replyTo: string, properties: Properties, body: Buffer) => Promise<unknown>,
    private readonly whenReady: (timeoutMs: number) => Promise<boolean>,
  ) {}

  /** A caller of this system waits for replies in this queue. */
  know(queue: string): void {
    if (!this.own.has(queue)) this.own.set(queue, true);
  }

  /** Takes a message that the broker has returned. */
  add({ fields, properties, content }: Message): void {
    const headers: Record<string, unknown> = properties.headers ?? {};
    const returns = Number(headers[RETURNS] ?? 0);
    const waitMs = WAITS_MS[returns];
    if (waitMs === undefined || content.length > LARGE_BYTES || this.bytes + content.length > MOST_BYTES) return;
    const isForeign = !this.own.has(fields.routingKey);
    if (isForeign && this.foreign >= MOST_FOREIGN) return;
    if (isForeign) this.foreign++;
    this.bytes += content.length;
    const { correlationId, contentType, type } = properties as Properties;
    const again = { persistent: false, correlationId, contentType, type, headers: { ...headers, [RETURNS]: returns + 1 } };
    const writeAgain = async () => {
      // A node that returns replies may be about to end their connection.
      const isReady = await this.whenReady(CHANNEL_MS);
      this.bytes -= content.length;
      if (isForeign) this.foreign--;
      if (isReady) await this.write(fields.routingKey, again, content);
    };
    // Without it the outcome of the call is unknown to its caller, as with every reply that is lost.
    setTimeout(() => void writeAgain().catch(() => undefined), waitMs).unref();
  }
}
