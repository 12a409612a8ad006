import type { PoolClient } from 'pg';

/** An event as the transaction of the change has left it. */
export interface OutboxEvent {
  /** Its place in the table: column `seq`. */
  seq: string;
  /** UUID; the same whenever it is published. */
  id: string;
  type: string;
  /** The tenant. */
  apiKey: string;
  organizationId: string;
  occurredAt: Date;
  /** JSON text. */
  data: string;
  /** Trace context of the sampled call that wrote it. */
  trace?: string | null;
}

export interface OutboxLimits {
  events: number;
  /** The first event may have more. */
  bytes: number;
  /** Younger events are left to the process that has stored them, in milliseconds by the clock of the database. */
  ageMs: number;
  /** API keys take turns among so many of the oldest. Without it the oldest are taken, whatever their key. */
  turnsAmong?: number;
}

/** A batch that was taken from the table. */
export interface TakenEvents {
  events: OutboxEvent[];
  /** Rows of which nothing is to be published any more, by `seq`. */
  dropped?: readonly string[];
  /** Whether there may be more. The number of events does not say: some are dropped, and a batch of large ones is small. */
  more: boolean;
}

export interface OutboxOptions {
  /**
   * Deletes events that no other relay has locked, but for those with one of these `seq`, and returns them. Its statement has to suit `GENERIC_PLANS`.
   */
  take(client: PoolClient, limits: OutboxLimits, without: readonly string[]): Promise<TakenEvents>;
  /**
   * Resolves when the broker has every one of them; settles within 4 s, because a transaction waits.
   *
   * @returns the ids of those that have to be published again: they stay, and hold up no others. There must be an end to their number
   */
  publish(events: readonly OutboxEvent[]): Promise<ReadonlySet<string> | void>;
  /** Whether those who store events pass them to the relay. Then rows younger than `EVENT_MEMORY_MS` are left to them. */
  fromMemory?: boolean;
  /** With more events than that no further commands are carried out until the broker has taken some. Default 1,000,000. */
  maxEvents?: number;
  /** NOTIFY on this channel wakes it. Takes one connection of the pool for good, and none when absent. */
  wokenBy?: string;
}
