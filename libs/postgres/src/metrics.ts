import type { Pool } from 'pg';
import { Counter, Gauge } from 'prom-client';

export const outboxPublished = new Counter({ name: 'outbox_published_total', help: 'Events that the broker has confirmed.' });

export const outboxFailures = new Counter({
  name: 'outbox_failures_total',
  help: 'Batches of events that could not be published and stay in the outbox.',
});

export const outboxOldestSeconds = new Gauge({
  name: 'outbox_oldest_seconds',
  help: 'Age of the oldest event in the outbox, 0 when it is empty; looked at every 10 s. While that fails it grows, unless the database is away.',
});

export const outboxEvents = new Gauge({ name: 'outbox_events', help: 'Events in the outbox; looked at every 10 s.' });

export const outboxEventsLimit = new Gauge({
  name: 'outbox_events_limit',
  help: 'With as many events in the outbox, commands wait.',
});

export const outboxMemoryBytes = new Gauge({
  name: 'outbox_memory_bytes',
  help: 'Bytes of events that this process is to publish without reading them back.',
});

export const outboxMemoryBytesLimit = new Gauge({
  name: 'outbox_memory_limit_bytes',
  help: 'As many of those as there may be. Further events are read from the outbox.',
});

export const erasureOldestSeconds = new Gauge({
  name: 'erasure_oldest_seconds',
  help: 'Age of the oldest erasure that this service has not completed, 0 without one; looked at every 10 s.',
});

export const erasureFailures = new Counter({
  name: 'erasure_failures_total',
  help: 'Failed steps of erasures. The step is repeated within 5 s.',
});

export const retentionFailures = new Counter({
  name: 'retention_failures_total',
  help: 'Failed attempts to delete old rows. The next attempt follows within ten minutes.',
});

export const membershipsDeleted = new Counter({
  name: 'memberships_deleted_total',
  help: 'Rows of memberships deleted because they ended 30 days ago.',
});

export const keysDeleted = new Counter({
  name: 'idempotency_keys_deleted_total',
  help: 'Idempotency-Keys deleted after 25 hours while no call came that would have deleted them.',
});

export const connectFailures = new Counter({
  name: 'database_connect_failures_total',
  help: 'Connections to a server of DATABASE_URL that failed, or were refused because the server accepts no writes. `server` is its position, from 1.',
  labelNames: ['server'],
});

export const serverInUse = new Gauge({
  name: 'database_server',
  help: 'Position in DATABASE_URL, from 1, of the server to which the last connection was opened.',
});

/** The pools of this process: one, except in tests. */
export const pools = new Set<Pick<Pool, 'totalCount' | 'idleCount' | 'waitingCount' | 'options'>>();

const sum = (of: (pool: Pick<Pool, 'totalCount' | 'idleCount' | 'waitingCount' | 'options'>) => number) =>
  [...pools].reduce((total, pool) => total + of(pool), 0);

export const poolConnections = new Gauge({
  name: 'database_pool_connections',
  help: 'Connections to PostgreSQL: in use (busy), or open without work (idle).',
  labelNames: ['state'],
  collect() {
    this.set(
      { state: 'busy' },
      sum(({ totalCount, idleCount }) => totalCount - idleCount),
    );
    this.set(
      { state: 'idle' },
      sum(({ idleCount }) => idleCount),
    );
  },
});

export const poolConnectionsLimit = new Gauge({
  name: 'database_pool_connections_limit',
  help: 'Most connections to PostgreSQL of this process: DATABASE_POOL_SIZE, and in users one more for the outbox. Fewer while the server has no room for them.',
  collect() {
    this.set(sum(({ options }) => options.max));
  },
});

export const poolWaiting = new Gauge({
  name: 'database_pool_waiting',
  help: 'Statements that wait for a connection, because all are in use.',
  collect() {
    this.set(sum(({ waitingCount }) => waitingCount));
  },
});
