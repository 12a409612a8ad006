import type { ManagementApi } from '@app/rabbitmq-admin/management-api';

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

/** Figures of all queues of the virtual host from the management API, every 6 s: its own figures are 5 s old. */
export class BrokerQueues {
  queues: BrokerQueue[] = [];
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
      // The parameter is for a broker that collects no figures: its answer has no lengths otherwise.
      const answer = (await this.api.get<Answer[]>(`queues/${this.api.vhost}?enable_queue_totals=true`)) ?? [];
      const lasting = answer.filter(({ exclusive }) => !exclusive);
      this.queues = lasting.slice(0, MOST_QUEUES).map(queueOf);
      this.problem = lasting.length > MOST_QUEUES ? `${lasting.length} queues exist, and ${MOST_QUEUES} are shown` : undefined;
    } catch (error) {
      this.queues = [];
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
