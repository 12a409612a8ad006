import type { Registry } from 'prom-client';
import type { ConnectionOptions } from '@app/amqp/connection/connection';
import type { ServiceName } from '@app/contracts/message';
import type { QueueKind } from '../topology/consumed-queues';
import type { PublisherRules } from './publisher-rights';

export interface RabbitServerOptions {
  /**
   * Its name is a prefix of three connections: for publishing, because a broker short of memory blocks publishers; for lanes; and for everything else
   * that is consumed. With several addresses a service with queries has one more at another node, for the standby queries and their answers.
   */
  connection: ConnectionOptions;
  service: ServiceName;
  /** Kinds of the service's queues that this process consumes. */
  queues: readonly QueueKind[];
  /** Most deliveries handled at once: commands, and queries. Events have places of their own. */
  prefetch: Readonly<Record<'commands' | 'queries', number>>;
  /** Whether an error means that the database is away or cannot be used. Needs `probe`, and must settle within seconds. */
  isUnavailable?: (error: unknown) => boolean | Promise<boolean>;
  /** Whether an error means that the handler changed nothing and may succeed when retried. */
  isTransient?: (error: unknown) => boolean;
  /** Whether an error means that a statement has taken too long. Its tenant pays for the time. */
  isTimeout?: (error: unknown) => boolean;
  /** Resolves when the database is back, rejects while it is away; settles within seconds. */
  probe?: () => Promise<void>;
  /** Rules which publisher may act for which tenant. Absent: every publisher that the broker accepts, for all tenants. */
  publishers?: PublisherRules;
  /**
   * Patterns whose handlers name the span of the delivery to each statement and call. For all others it is the active span, which slows down all
   * other deliveries while it is there.
   */
  withoutScope?: readonly string[];
  /**
   * Whether the ack of a command waits until the broker has confirmed its reply. Then the end of a process loses no reply that the broker
   * would have confirmed within a second, but more often a command is delivered again that was answered. Only for a service whose commands take
   * effect once, however often they are delivered. Default false.
   */
  confirmReplies?: boolean;
  /** Attempts of a command without a caller that waits, before it becomes a dead letter. Default 8, over 20 minutes. */
  maxAttempts?: number;
  /** How long a delivery waits that may have ended a process just now, in milliseconds. Default 5000. */
  crashPauseMs?: number;
  /** How long close() waits for running handlers, in milliseconds. Default 10,000. */
  drainTimeoutMs?: number;
  /** Default: the global register of prom-client. */
  metrics?: Registry;
}
