import type { ManagementApi } from '@app/rabbitmq-admin/management-api';
import { queuePage, queuesOfConnections } from '@app/rabbitmq-admin/queue-pages';

const EVERY_MS = 6000;
/** Most queues that are kept: also other services have some. */
const MOST_QUEUES = 300;

interface Answer {
  name: string;
  exclusive?: boolean;
  messages_ready?: number;
  messages_unacknowledged?: number;
  consumers?: number;
  arguments?: Record<string, unknown>;
  message_stats?: { publish_details?: { rate?: number }; ack_details?: { rate?: number } };
}

export interface BrokerQueue {
  name: string;
  ready: number;
  unacknowledged: number;
  /** NaN where the broker does not say it. */
  consumers: number;
  limit: number;
  /** Messages a second into the queue, and acknowledged out of it; NaN where the broker has not counted any. */
  in: number;
  out: number;
}

/** Figures of all queues with a name of ours, from the management API, every 6 s: its own figures are 5 s old. */
export class BrokerQueues {
  queues: BrokerQueue[] = [];
  /** Number of the queues that the broker has named: those of replies, and of events for one process. NaN while it is not known. */
  ofConnections = NaN;
  /** Why there is nothing to show. */
  problem: string | undefined;
  private timer?: NodeJS.Timeout;
  private asking = false;

  /** @param api absent without RABBITMQ_MANAGEMENT_URL */
  constructor(private readonly api?: ManagementApi) {
    if (!api) this.problem = 'RABBITMQ_MANAGEMENT_URL is not set: rates, and the queues of other services, are not known';
  }

  start(): void {
    void this.ask();
    this.timer = setInterval(() => void this.ask(), EVERY_MS);
  }

  stop(): void {
    clearInterval(this.timer);
  }

  private async ask(): Promise<void> {
    if (!this.api || this.asking) return;
    this.asking = true;
    try {
      const { items, filtered_count: exist } = await queuePage<Answer>(this.api, 1, MOST_QUEUES);
      this.ofConnections = await queuesOfConnections(this.api);
      this.queues = items.filter(({ exclusive }) => !exclusive).map(queueOf);
      this.problem = exist > MOST_QUEUES ? `${exist} queues exist, and ${MOST_QUEUES} are shown` : undefined;
    } catch (error) {
      this.queues = [];
      this.ofConnections = NaN;
      this.problem = (error as Error).message;
    } finally {
      this.asking = false;
    }
  }
}

const queueOf = ({ name, message_stats: stats, ...queue }: Answer): BrokerQueue => ({
  name,
  ready: queue.messages_ready ?? 0,
  unacknowledged: queue.messages_unacknowledged ?? 0,
  consumers: queue.consumers ?? NaN,
  limit: Number(queue.arguments?.['x-max-length'] ?? NaN),
  in: stats?.publish_details?.rate ?? NaN,
  out: stats?.ack_details?.rate ?? NaN,
});
