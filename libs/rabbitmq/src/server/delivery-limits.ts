import type { Delivery } from '../delivery/delivery';
import type { QueueConsumer } from '../delivery/queue-consumer';
import type { ConsumedQueue } from '../topology/consumed-queues';

/**
 * Spares the delivery limits of the queues of events and suspects while the database is away. The broker ends a channel whose delivery is not settled
 * in half an hour, and that counts. So what was delivered again is not taken a third time before the database is back.
 */
export class DeliveryLimits {
  constructor(private readonly consumers: ReadonlyMap<ConsumedQueue, Pick<QueueConsumer, 'pause' | 'resume'>>) {}

  /** @returns the wait of the delivery for the database */
  spare<T>({ queue, context }: Delivery, wait: Promise<T>): Promise<T> {
    if (context.redelivered && (queue.alone || queue.kind === 'events')) void this.consumers.get(queue)?.pause('database');
    return wait;
  }

  /** The database is back. */
  resume(): void {
    for (const consumer of this.consumers.values()) void consumer.resume('database');
  }
}
