import type { ConsumedQueue } from '../topology/consumed-queues';
import type { TransportMetrics } from '../metrics';
import type { QueueConsumer } from '../delivery/queue-consumer';

/** With more held deliveries the queue is not consumed any more. */
const MOST_HELD = 16;

/** Counts the held deliveries: the broker takes neither their retry nor their dead letter for now. The limit protects memory and other queues. */
export class HeldDeliveries {
  private readonly held = new Map<ConsumedQueue, number>();

  constructor(
    private readonly consumers: ReadonlyMap<ConsumedQueue, QueueConsumer>,
    private readonly metrics: TransportMetrics,
  ) {
    metrics.lettersHeldLimit.set(MOST_HELD);
  }

  /** undefined while every queue is consumed, else a short reason without secrets. */
  check(): string | undefined {
    const stopped = [...this.held].find(([, held]) => held > MOST_HELD);
    return stopped && `${stopped[0].name} is not consumed: the broker does not take its retries and dead letters`;
  }

  change(queue: ConsumedQueue, by: 1 | -1): void {
    const before = this.held.get(queue) ?? 0;
    const held = before + by;
    this.held.set(queue, held);
    this.metrics.lettersHeld.set({ queue: queue.name }, held);
    const consumer = this.consumers.get(queue);
    if (before <= MOST_HELD && held > MOST_HELD) void consumer?.pause('letters');
    if (before > MOST_HELD && held <= MOST_HELD) void consumer?.resume('letters');
  }
}
