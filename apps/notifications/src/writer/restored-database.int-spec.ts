import type { DataSource } from 'typeorm';
import { OutboxRelay } from '@app/postgres/outbox/outbox';
import { takeEvents } from '../db/outbox.repository';
import { InsertNotificationsRepository } from '../db/insert-notifications.repository';
import { eventually } from '@app/testing/eventually';
import { aNotification, connectTestDatabase } from '../../test/notifications';
import { NotificationWriter } from './notification-writer';

/** A backup is restored, or another server takes over, while a writer runs: numbers of organizations may belong to others now. */
describe('a writer whose database becomes an older one', () => {
  let database: Awaited<ReturnType<typeof connectTestDatabase>>;
  let writing: DataSource;
  let restoring: DataSource;
  let relay: OutboxRelay;
  let writer: NotificationWriter;

  beforeEach(async () => {
    database = await connectTestDatabase(2);
    [writing, restoring] = database.dataSources as [DataSource, DataSource];
    relay = new OutboxRelay(writing, { take: takeEvents, publish: async () => undefined, fromMemory: true });
    writer = new NotificationWriter(new InsertNotificationsRepository(writing), relay);
  });
  afterEach(async () => {
    await relay.stop();
    await database.close();
  });

  /** As a client does: a repetition with the same id is harmless. */
  const add = (id: string) => eventually(async () => (await writer.add(aNotification({ id }))).outcome === 'stored');
  const added = (kind: string) => Promise.all(Array.from({ length: 50 }, (_, index) => add(`${kind} ${index}`)));

  /** The organization never existed, and another tenant has its number, the same names and the same document. */
  async function restore(): Promise<void> {
    await restoring.query(`
      BEGIN;
      LOCK organizations, documents, notifications, recipients, outbox;
      CREATE TEMPORARY TABLE earlier AS SELECT id FROM organizations;
      DELETE FROM outbox; DELETE FROM recipients; DELETE FROM notifications; DELETE FROM documents; DELETE FROM organizations;
      INSERT INTO organizations (id, api_key, organization_id) OVERRIDING SYSTEM VALUE SELECT id, 'other tenant', 'org' FROM earlier;
      INSERT INTO documents SELECT id, 'doc' FROM organizations;
      DROP TABLE earlier;
      COMMIT`);
  }
  const endConnections = () =>
    restoring.query(
      'SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()',
    );

  it.each([
    ['and whose connections end', endConnections],
    ['and whose connections go on', async () => undefined],
  ])('%s: loses nothing, and mixes no tenants', async (_, end) => {
    for (const round of ['first', 'second']) await added(round);
    const during = added('during');
    await restore();
    await end();
    await during;
    await added('after');
    const stored = await restoring.query<{ api_key: string; id: string; document: boolean }[]>(
      `SELECT o.api_key, n.id, EXISTS (SELECT FROM documents d WHERE d.organization = o.id AND d.document_id = n.document_id) AS document
       FROM notifications n LEFT JOIN organizations o ON o.id = n.organization`,
    );
    expect(stored.filter(({ api_key: apiKey, document }) => apiKey !== 'tenant' || !document)).toEqual([]);
    const after = stored.filter(({ id }) => id.startsWith('after'));
    expect(after).toHaveLength(50);
    const recipients = await restoring.query<unknown[]>(`SELECT FROM recipients WHERE notification_id LIKE 'after %'`);
    expect(recipients).toHaveLength(50);
  });
});
