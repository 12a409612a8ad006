import { RabbitConnection } from '@app/amqp/connection/connection';
import { commandsOf, type Part } from '../delivery/commands-of';
import { QueueConsumer } from '../delivery/queue-consumer';
import type { TransportMetrics } from '../metrics';
import { observe } from '../observe';
import type { HeldDeliveries } from '../settle/held-deliveries';
import { LetterTurns } from '../settle/letter-turns';
import { Settlement } from '../settle/settlement';
import type { ConsumedQueue } from '../topology/consumed-queues';
import { LANES, letterQueues, RETRY_DELAYS, retryQueue, suspectQueue } from '../topology/topology';
import type { RabbitServerOptions } from './rabbit-server-options';

const MOST_PRIORITY = 1_000_000;

/** The connections of a server, and what consumes and settles deliveries over them. */
export class ServerConnections {
  readonly consuming: RabbitConnection;
  /** Only for what other services publish: the calls would wait in one socket behind the large bodies of a lane. */
  private readonly lanes: RabbitConnection;
  private readonly publishing: RabbitConnection;
  private readonly settlement: Settlement;
  /** Queues for commands that fail. */
  private readonly failing: readonly string[];
  /**
   * Another node for what is {@link ConsumedQueue.apart}: a node that stands still keeps what it has delivered, and must not be the only one that
   * delivers queries.
   */
  private readonly apart?: { connection: RabbitConnection; settlement: Settlement };

  /** @throws Error when the broker's URL is invalid */
  constructor(
    { connection, service, queues, confirmReplies = false }: RabbitServerOptions,
    private readonly metrics: TransportMetrics,
    held: HeldDeliveries,
  ) {
    const observer = observe(metrics);
    const named = (name: string, backwards = false) =>
      new RabbitConnection({ ...connection, name: `${connection.name} ${name}`, backwards }, observer);
    this.consuming = named('consuming');
    this.lanes = named('lanes');
    this.publishing = named('publishing');
    const settle = { service, confirmReplies, metrics, heldDeliveries: held, letterTurns: new LetterTurns(metrics) };
    this.settlement = new Settlement(this.publishing, settle);
    const retries = RETRY_DELAYS.map((delay) => retryQueue(service, delay));
    this.failing = [...letterQueues(service), suspectQueue(service), ...retries];
    if (this.consuming.nodes.addresses.length === 1 || !queues.includes('queries')) return;
    const standby = named('standby', true);
    this.apart = { connection: standby, settlement: new Settlement(standby, settle) };
  }

  consumerOf(queue: ConsumedQueue, onDelivery: (part: Part) => void, onChannelEnd: () => void): QueueConsumer {
    const { name, kind, exchange, prefetch, alone } = queue;
    this.metrics.prefetch.set({ queue: name }, prefetch);
    // A rate misses the first event of a counter that appears with it.
    this.metrics.redeliveries.inc({ queue: name }, 0);
    this.metrics.lettersHeld.set({ queue: name }, 0);
    return new QueueConsumer(this.connectionOf(queue), {
      queue: name,
      needs: kind === 'queries' ? [] : this.failing,
      prefetch,
      alone,
      // One process takes what comes at a time, so that commands of one publisher that crash their consumer do not end all processes at once.
      ...(kind === 'commands' && exchange !== 'calls' && { priority: Math.floor(Math.random() * MOST_PRIORITY) }),
      onDelivery: (message, acks) => {
        for (const part of commandsOf(message, acks)) onDelivery(part);
      },
      onChannelEnd,
      ...(queue.onOneNode && { onNodeAway: (isAway) => this.metrics.queueAway.set({ queue: name }, Number(isAway)) }),
    });
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

  private connectionOf(queue: ConsumedQueue): RabbitConnection {
    if (queue.apart && this.apart) return this.apart.connection;
    return isOfLane(queue) ? this.lanes : this.consuming;
  }

  private get all(): RabbitConnection[] {
    return [this.publishing, this.consuming, this.lanes, ...(this.apart ? [this.apart.connection] : [])];
  }
}

const isOfLane = ({ exchange }: ConsumedQueue): boolean => LANES.some((lane) => lane === exchange);
