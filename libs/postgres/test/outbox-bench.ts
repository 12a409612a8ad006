import { Client } from 'pg';
import type { DataSource } from 'typeorm';
import { createEmptyDatabase, type TestDatabase } from '@app/testing/database/server-databases';
import { createDataSource } from '../src/connections/data-source';
import { OutboxRelay } from '../src/outbox/outbox';
import type { OutboxEvent, OutboxOptions } from '../src/outbox/outbox-event';

const EVENT = `seq, id, data, 't' AS type, 'k' AS "apiKey", 'o' AS "organizationId", occurred_at AS "occurredAt"`;

/** Relays with a minimal table, for the tests of a file. The tables of the services are tested with their writers. */
export function outboxBench(): OutboxBench {
  const bench = new OutboxBench();
  beforeAll(() => bench.start());
  afterEach(() => bench.empty());
  afterAll(() => bench.stop());
  return bench;
}

/** See {@link outboxBench}. */
class OutboxBench {
  dataSource: DataSource;
  sql: Client;
  /** They are stopped after each test. */
  readonly relays: OutboxRelay[] = [];
  /** Ids of events, in the order of publishing. */
  readonly published: string[] = [];
  /** Ids that were read from the table. */
  readonly read: string[] = [];
  private database?: TestDatabase;

  async start(): Promise<void> {
    this.database = await createEmptyDatabase();
    const { url } = this.database;
    this.sql = new Client({ connectionString: url });
    await this.sql.connect();
    await this.sql.query(`CREATE TABLE outbox (
      seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, id text NOT NULL, data text NOT NULL DEFAULT '{}',
      occurred_at timestamptz NOT NULL DEFAULT clock_timestamp())`);
    this.dataSource = await createDataSource({ name: 'test', url, schema: 'public', migrations: [], poolSize: 10 }).initialize();
  }

  async empty(): Promise<void> {
    for (const relay of this.relays.splice(0)) await relay.stop();
    await this.sql.query('TRUNCATE outbox');
    this.published.length = this.read.length = 0;
  }

  async stop(): Promise<void> {
    await this.dataSource?.destroy();
    await this.sql?.end();
    await this.database?.drop();
  }

  readonly take: OutboxOptions['take'] = async (client, { events, ageMs }, without) => {
    const { rows } = await client.query<OutboxEvent>(
      `WITH taken AS (
         DELETE FROM outbox WHERE seq IN (
           SELECT seq FROM outbox WHERE seq <> ALL ($2::bigint[]) AND occurred_at <= statement_timestamp() - $3 * interval '1 ms'
           ORDER BY seq LIMIT $1 FOR UPDATE SKIP LOCKED
         ) RETURNING *
       )
       SELECT ${EVENT} FROM taken ORDER BY seq`,
      [events, without, ageMs],
    );
    this.read.push(...rows.map(({ id }) => id));
    return { events: rows, more: rows.length === events };
  };

  readonly toList = async (events: readonly OutboxEvent[]): Promise<void> =>
    void this.published.push(...events.map(({ id }) => id));

  relayTo(publish: OutboxOptions['publish'], options: Partial<OutboxOptions> = {}): OutboxRelay {
    const relay = new OutboxRelay(this.dataSource, { take: this.take, publish, ...options });
    this.relays.push(relay);
    return relay;
  }

  /** Stores events as a process does that ends before it publishes them. */
  async store(ids: readonly string[], data = '{}'): Promise<OutboxEvent[]> {
    const insert = `INSERT INTO outbox (id, data) SELECT unnest($1::text[]), $2 RETURNING ${EVENT}`;
    return (await this.sql.query<OutboxEvent>(insert, [ids, data])).rows;
  }

  /** Ids of the events in the table. */
  async left(): Promise<string[]> {
    return (await this.sql.query<{ id: string }>('SELECT id FROM outbox ORDER BY seq')).rows.map(({ id }) => id);
  }
}

/** So many ids, with their numbers. */
export const numbered = (count: number): string[] => Array.from({ length: count }, (_, index) => `e${index}`);
