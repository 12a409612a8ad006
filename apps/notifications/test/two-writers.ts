import { createHash } from 'node:crypto';
import type { DataSource } from 'typeorm';
import { OutboxRelay } from '@app/postgres/outbox/outbox';
import type { OutboxEvent } from '@app/postgres/outbox/outbox-event';
import { InsertNotificationsRepository, type NewNotification } from '../src/db/insert-notifications.repository';
import { takeEvents } from '../src/db/outbox.repository';
import { NotificationWriter } from '../src/writer/notification-writer';
import type { Written } from '../src/writer/written';
import { aNotification, connectTestDatabase } from './notifications';

/** Two writers as of two processes, with a database of their own and no broker. */
export class TwoWriters {
  writer: NotificationWriter;
  otherWriter: NotificationWriter;
  readonly relays: OutboxRelay[];
  readonly published: OutboxEvent[] = [];

  private constructor(private readonly database: Awaited<ReturnType<typeof connectTestDatabase>>) {
    this.relays = database.dataSources.map(
      (source) =>
        new OutboxRelay(source, {
          take: takeEvents,
          publish: async (batch) => void this.published.push(...batch),
          fromMemory: true,
        }),
    );
  }

  static async start(): Promise<TwoWriters> {
    return new TwoWriters(await connectTestDatabase(2));
  }

  get dataSources(): [DataSource, DataSource] {
    return this.database.dataSources as [DataSource, DataSource];
  }

  /** New writers, because they remember documents, and the tables are emptied. */
  renew(): void {
    [this.writer, this.otherWriter] = this.dataSources.map(
      (source, index) => new NotificationWriter(new InsertNotificationsRepository(source), this.relays[index]),
    ) as [NotificationWriter, NotificationWriter];
  }

  /** With DELETE, because a relay may still run: TRUNCATE locks whole tables, and the two could deadlock. */
  async empty(): Promise<void> {
    for (const table of ['idempotency_keys', 'recipients', 'notifications', 'documents', 'organizations'])
      await this.query(`DELETE FROM ${table}`);
  }

  async stop(): Promise<void> {
    for (const relay of this.relays) await relay.stop();
    await this.database.close();
  }

  query<Row>(statement: string): Promise<Row[]> {
    return this.dataSources[0].query<Row[]>(statement);
  }

  async ids(): Promise<string[]> {
    return (await this.query<{ id: string }>('SELECT id FROM notifications ORDER BY organization, id')).map(({ id }) => id);
  }

  async count(table: string): Promise<number> {
    return Number((await this.query<{ count: string }>(`SELECT count(*) FROM ${table}`))[0]?.count);
  }

  async isBlocked(): Promise<boolean> {
    const waiting = `SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`;
    return (await this.query(waiting)).length > 0;
  }
}

export const stored = (notificationId: string): Written => ({ outcome: 'stored', notificationId });

/** A notification with an Idempotency-Key. */
export const withKey = (key: string, differences: Partial<NewNotification>, request = 'request'): NewNotification =>
  aNotification({ ...differences, idempotency: { key, fingerprint: createHash('sha256').update(request).digest() } });
