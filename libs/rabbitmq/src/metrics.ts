import {
  Counter,
  Gauge,
  Histogram,
  register,
  type CounterConfiguration,
  type GaugeConfiguration,
  type HistogramConfiguration,
  type Registry,
} from 'prom-client';
import { MOST_COMMANDS } from '@app/amqp/messages/command-format';

const CALL_BUCKETS_S = [0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10];
/** A command with a caller expires after some seconds, one without a caller may wait for hours. */
const AGE_BUCKETS_S = [0.5, 1, 2, 5, 10, 30, 60, 300, 1800];

/** Metrics of the transport. One instance for each registry: several clients and servers of a process share it. */
export class TransportMetrics {
  /** Called before the metrics are read, to bring some of them up to date. Each must settle within a second or so. */
  readonly beforeRead = new Set<() => Promise<void>>();
  readonly reconnects = this.counter({
    name: 'rabbitmq_reconnects_total',
    help: 'Attempts to connect again after a failed attempt or a lost connection.',
    labelNames: ['connection'],
  });
  readonly connected = this.gauge({
    name: 'rabbitmq_connected',
    help: '1 while the connection is open to this address of the list of the URL, 0 while it prefers this one and is elsewhere. A host name is one address.',
    labelNames: ['connection', 'address'],
  });
  readonly blocked = this.gauge({
    name: 'rabbitmq_blocked',
    help: '1 while the broker is short of memory or disk and takes no messages from this connection.',
    labelNames: ['connection'],
  });
  readonly calls = this.histogram({
    name: 'rabbitmq_call_seconds',
    help: 'Calls from publishing to the reply, by the status of the answer.',
    labelNames: ['message', 'status'],
    buckets: CALL_BUCKETS_S,
  });
  readonly callsPending = this.gauge({
    name: 'rabbitmq_calls_pending',
    help: 'Calls waiting for their reply.',
    labelNames: ['connection'],
  });
  readonly callsPendingLimit = this.gauge({
    name: 'rabbitmq_calls_pending_limit',
    help: 'With as many pending calls, further ones are refused.',
    labelNames: ['connection'],
  });
  readonly returned = this.counter({
    name: 'rabbitmq_returned_total',
    help: 'Messages returned because no queue is bound to their routing key.',
    labelNames: ['exchange'],
  });
  readonly nacked = this.counter({
    name: 'rabbitmq_nacked_total',
    help: 'Messages refused (nacked) by the broker, for example because a queue is full.',
    labelNames: ['exchange'],
  });
  readonly commandsPerMessage = this.histogram({
    name: 'rabbitmq_commands_per_message',
    help: 'Commands with a caller that waits in one message. Under load they share messages.',
    labelNames: ['message'],
    buckets: [1, 2, 4, 8, 16, MOST_COMMANDS],
  });
  readonly queriesRepeated = this.counter({
    name: 'rabbitmq_queries_repeated_total',
    help: 'Queries published again, by reason: away, unconfirmed, unanswered (for 0.4 s, and then longer) or lost (the connection).',
    labelNames: ['message', 'reason'],
  });
  readonly eventsRefused = this.counter({
    name: 'events_refused_total',
    help: 'Events that a listener of another service has lost, because its full queue refused them for 30 s.',
    labelNames: ['type'],
  });
  readonly unknownReplies = this.counter({
    name: 'rabbitmq_unknown_replies_total',
    help: 'Replies without a pending call: mostly late ones.',
  });
  readonly deliveries = this.counter({
    name: 'rabbitmq_deliveries_total',
    help: 'Settled deliveries by outcome. The status is that of the reply or of the error.',
    labelNames: ['pattern', 'outcome', 'status'],
  });
  readonly deliverySeconds = this.histogram({
    name: 'rabbitmq_delivery_seconds',
    help: 'Deliveries from their arrival in the process until they are settled: the wait for their turn, the handler, and the reply.',
    labelNames: ['pattern'],
    buckets: CALL_BUCKETS_S,
  });
  readonly redeliveries = this.counter({
    name: 'rabbitmq_redeliveries_total',
    help: 'Deliveries that the broker has made before: a process or its connection ended, or put them back.',
    labelNames: ['queue'],
  });
  readonly commandAge = this.histogram({
    name: 'rabbitmq_command_age_seconds',
    help: 'Time from the publication of a command to its turn, without retries. Publishers give whole seconds, so it is up to 1 s too short.',
    labelNames: ['queue'],
    buckets: AGE_BUCKETS_S,
  });
  readonly deliveriesInFlight = this.gauge({
    name: 'rabbitmq_deliveries_in_flight',
    help: 'Unsettled deliveries.',
    labelNames: ['queue'],
  });
  readonly prefetch = this.gauge({
    name: 'rabbitmq_prefetch',
    help: 'Most unsettled messages of the queue in this process. A message of the calls may be up to 32 deliveries.',
    labelNames: ['queue'],
  });
  readonly deliveriesWaiting = this.gauge({
    name: 'rabbitmq_deliveries_waiting',
    help: 'Deliveries that wait for their turn in the fair schedule, by kind: commands, queries, events, or letters of refused commands.',
    labelNames: ['kind'],
  });
  readonly deliveriesRunning = this.gauge({
    name: 'rabbitmq_deliveries_running',
    help: 'Deliveries that have their turn, by kind.',
    labelNames: ['kind'],
  });
  readonly deliveriesRunningLimit = this.gauge({
    name: 'rabbitmq_deliveries_running_limit',
    help: 'As many of those as there may be: the setting with COMMAND_PREFETCH or QUERY_PREFETCH in its name, and 8 for events.',
    labelNames: ['kind'],
  });
  readonly queueAway = this.gauge({
    name: 'rabbitmq_queue_away',
    help: '1 while the broker node of a queue of queries is away. Absent until that has happened.',
    labelNames: ['queue'],
  });
  readonly lettersHeld = this.gauge({
    name: 'rabbitmq_letters_held',
    help: 'Deliveries held because the broker does not take their retry or dead letter, or has not confirmed it for 8 s.',
    labelNames: ['queue'],
  });
  readonly lettersHeldLimit = this.gauge({
    name: 'rabbitmq_letters_held_limit',
    help: 'With as many of those the queue is not consumed, or with fewer when a process has fewer of the queue at a time.',
  });
  readonly lettersDropped = this.counter({
    name: 'rabbitmq_letters_dropped_total',
    help: 'Refused commands of which no letter is kept, because their publisher has left too many or the broker takes none.',
  });
  readonly queueMessages = this.gauge({
    name: 'queue_messages',
    help: 'Messages that wait in the queue, as the broker says when the metrics are read. Every process of a service says the same.',
    labelNames: ['queue'],
    collect: () => this.look(),
  });
  readonly queueMessagesLimit = this.gauge({
    name: 'queue_messages_limit',
    help: 'Most messages in the queue. A full queue refuses, or drops its oldest message in the case of refused letters.',
    labelNames: ['queue'],
  });
  readonly queueConsumers = this.gauge({
    name: 'queue_consumers',
    help: 'Consumers of the queue in all processes.',
    labelNames: ['queue'],
    collect: () => this.look(),
  });

  private static readonly made = new WeakMap<Registry, TransportMetrics>();

  static of(registry: Registry = register): TransportMetrics {
    let metrics = TransportMetrics.made.get(registry);
    if (!metrics) TransportMetrics.made.set(registry, (metrics = new TransportMetrics([registry])));
    return metrics;
  }

  private constructor(private readonly registers: Registry[]) {}

  private counter<Label extends string>(metric: CounterConfiguration<Label>): Counter<Label> {
    return new Counter({ ...metric, registers: this.registers });
  }

  private gauge<Label extends string>(metric: GaugeConfiguration<Label>): Gauge<Label> {
    return new Gauge({ ...metric, registers: this.registers });
  }

  private histogram<Label extends string>(metric: HistogramConfiguration<Label>): Histogram<Label> {
    return new Histogram({ ...metric, registers: this.registers });
  }

  private async look(): Promise<void> {
    await Promise.all([...this.beforeRead].map((look) => look()));
  }
}
