import { Logger } from '@nestjs/common';
import type { ConsumedQueue } from '../topology/consumed-queues';
import type { TransportMetrics } from '../metrics';
import type { QueueConsumer } from '../delivery/queue-consumer';

/** With as many held deliveries the queue is not consumed any more. */
const MOST_HELD = 16;

/** Users has 8 deliveries of a queue in a process: with as many held ones the broker sends no more. A suspect is held by itself. */
const mostOf = ({ prefetch, alone }: ConsumedQueue): number => (alone ? MOST_HELD : Math.min(MOST_HELD, prefetch));

const REASON = 'the broker does not take its retries and dead letters';
const HINT = 'Make room with "npm run dead-letters": docs/runbooks/QueueNotConsumed.md.';

/** Counts the held deliveries: the broker takes neither their retry nor their dead letter for now. The limit protects memory and other queues. */
export class HeldDeliveries {
  private readonly logger = new Logger('RabbitMQ');
  private readonly held = new Map<ConsumedQueue, number>();

  constructor(
    private readonly consumers: ReadonlyMap<ConsumedQueue, Pick<QueueConsumer, 'pause' | 'resume'>>,
    private readonly metrics: TransportMetrics,
  ) {
    metrics.lettersHeldLimit.set(MOST_HELD);
  }

  /** undefined while every queue is consumed, else a short reason without secrets. */
  check(): string | undefined {
    const stopped = [...this.held].find(([queue, held]) => held >= mostOf(queue));
    return stopped && `${stopped[0].name} is not consumed: ${REASON}`;
  }

  change(queue: ConsumedQueue, by: 1 | -1): void {
    const most = mostOf(queue);
    const before = this.held.get(queue) ?? 0;
    const held = before + by;
    this.held.set(queue, held);
    this.metrics.lettersHeld.set({ queue: queue.name }, held);
    if (before < most && held >= most) {
      this.logger.warn({ msg: 'a queue is not consumed', queue: queue.name, held, reason: REASON, hint: HINT });
      void this.consumers.get(queue)?.pause('letters');
    }
    if (before >= most && held < most) {
      this.logger.log({ msg: 'a queue is consumed again', queue: queue.name, held });
      void this.consumers.get(queue)?.resume('letters');
    }
  }
}
