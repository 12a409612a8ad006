import { Logger } from '@nestjs/common';
import type { TransportMetrics } from '../metrics';
import type { FairSchedule } from './fair-schedule';

const EVERY_MS = 10_000;
const WORTH_A_LINE = 32;

/** Shows what waits for its turn in a schedule: in the metrics, and in the log when it is much. */
export class WaitingReport {
  private readonly logger = new Logger('RabbitMQ');
  private loggedAt = -Infinity;
  private shown = 0;

  constructor(
    private readonly kind: 'commands' | 'queries' | 'events' | 'letters',
    private readonly schedule: FairSchedule,
    private readonly metrics: TransportMetrics,
  ) {
    metrics.deliveriesWaiting.set({ kind }, 0);
  }

  update(): void {
    const { waiting, resting } = this.schedule;
    if (waiting === this.shown) return;
    this.shown = waiting;
    this.metrics.deliveriesWaiting.set({ kind: this.kind }, waiting);
    const now = performance.now();
    if (waiting < WORTH_A_LINE || now - this.loggedAt < EVERY_MS) return;
    this.loggedAt = now;
    this.logger.log({ msg: 'deliveries wait for their turn', kind: this.kind, waiting, resting, most: this.schedule.busiest(3) });
  }
}
