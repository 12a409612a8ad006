import { RabbitConnection } from '@app/amqp/connection/connection';
import type { TransportMetrics } from '../metrics';
import { observe } from '../observe';
import type { HeldDeliveries } from '../settle/held-deliveries';
import { Settlement } from '../settle/settlement';
import type { ConsumedQueue } from '../topology/consumed-queues';
import type { RabbitServerOptions } from './rabbit-server-options';

/** The connections of a server, and what settles deliveries over them. */
export class ServerConnections {
  readonly consuming: RabbitConnection;
  private readonly publishing: RabbitConnection;
  private readonly settlement: Settlement;
  /**
   * Another node for what is {@link ConsumedQueue.apart}: a node that stands still keeps what it has delivered, and must not be the only one that
   * delivers queries.
   */
  private readonly apart?: { connection: RabbitConnection; settlement: Settlement };

  /** @throws Error when the broker's URL is invalid */
  constructor({ connection, service, queues }: RabbitServerOptions, metrics: TransportMetrics, held: HeldDeliveries) {
    const observer = observe(metrics);
    const named = (name: string, backwards = false) =>
      new RabbitConnection({ ...connection, name: `${connection.name} ${name}`, backwards }, observer);
    this.consuming = named('consuming');
    this.publishing = named('publishing');
    this.settlement = new Settlement(service, this.publishing, metrics, held);
    if (this.consuming.nodes.addresses.length === 1 || !queues.includes('queries')) return;
    const standby = named('standby', true);
    this.apart = { connection: standby, settlement: new Settlement(service, standby, metrics, held) };
  }

  consumingOf(queue: ConsumedQueue): RabbitConnection {
    return (queue.apart && this.apart?.connection) || this.consuming;
  }

  settlementOf(queue: ConsumedQueue): Settlement {
    return (queue.apart && this.apart?.settlement) || this.settlement;
  }

  start(): void {
    for (const connection of this.all) connection.start();
  }

  /** undefined when replies can be sent, else a short reason without secrets. */
  check(): string | undefined {
    return this.settlement.check() ?? this.apart?.settlement.check();
  }

  /** Flushes what was published. From now on no delivery waits for the broker to come back. */
  async flush(): Promise<void> {
    const settlements = [this.settlement, ...(this.apart ? [this.apart.settlement] : [])];
    for (const settlement of settlements) settlement.stopWaiting();
    await Promise.all(settlements.map((settlement) => settlement.close()));
  }

  async close(): Promise<void> {
    await Promise.all(this.all.map((connection) => connection.close()));
  }

  private get all(): RabbitConnection[] {
    return [this.publishing, this.consuming, ...(this.apart ? [this.apart.connection] : [])];
  }
}
