import type { QueryRunner } from 'typeorm';
import { eventually } from '@app/testing/eventually';
import { aNotification, testDatabase } from '../../test/notifications';
import { DeleteNotificationsRepository, type Deletion } from './delete-notifications.repository';
import { InsertNotificationsRepository } from './insert-notifications.repository';
import { ReadingsRepository } from './readings.repository';

const TENANT = { apiKey: 'tenant', organizationId: 'org' };

describe('a deletion beside another transaction', () => {
  const database = testDatabase();
  let deletes: DeleteNotificationsRepository;
  let other: QueryRunner;
  const to = Array.from({ length: 1000 }, (_, n) => `u${n}`);

  beforeAll(() => void (deletes = new DeleteNotificationsRepository(database.dataSources[0])));
  beforeEach(async () => {
    await query('TRUNCATE organizations, documents, notifications, recipients, outbox, deletions, readings CASCADE');
    await new InsertNotificationsRepository(database.dataSources[0]).insert(['a', 'b'].map((id) => aNotification({ id, to })));
    other = database.dataSources[0].createQueryRunner();
    await other.startTransaction();
  });
  afterEach(() => other.release());

  const query = <Row>(sql: string) => database.dataSources[0].query<Row[]>(sql);
  const run = (messageId: string): Promise<unknown> => {
    const deletion: Deletion = { ...TENANT, messageId, ids: ['a'] };
    return deletes.delete(deletion);
  };
  const isWaiting = async () =>
    (await query(`SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`)).length > 0;

  it('leaves no recipient of a notification whose users were erased meanwhile', async () => {
    await query(`UPDATE recipients SET location_id = 'moved to the end' WHERE notification_id = 'a' AND user_id = 'u500'`);
    await other.query(
      `UPDATE notifications SET content = jsonb_set(content::jsonb, '{notifyUsers}', (content::jsonb -> 'notifyUsers') - 1)::json WHERE id = 'a'`,
    );
    await other.query(`DELETE FROM recipients WHERE user_id = 'u1'`);
    const deleted = run('m');
    await eventually(isWaiting);
    await other.commitTransaction();
    expect(await deleted).toMatchObject({ deleted: ['a'] });
    expect(await query(`SELECT user_id FROM recipients WHERE notification_id = 'a'`)).toEqual([]);
  });

  // A redelivery meets the statement of the process that has ended.
  it('says of one that was deleted meanwhile that it is deleted', async () => {
    await other.query(`UPDATE notifications SET document_id = '' WHERE id = 'a'`);
    const deleted = run('m');
    await eventually(isWaiting);
    await other.commitTransaction();
    expect(await deleted).toMatchObject({ deleted: ['a'], left: [] });
  });

  it('does not wait for those who mark it as read or unread', async () => {
    // In the order in which an update does not lock them.
    for (const user of ['u2', 'u1'])
      await query(
        `INSERT INTO readings SELECT organization, '${user}', "timestamp", id, true, -1 FROM notifications WHERE id = 'a'`,
      );
    await other.query(`SELECT FROM readings WHERE user_id = 'u1' FOR UPDATE`);
    const pairs = ['u1', 'u2'].map((userId) => ({ id: 'a', userId, read: false }));
    const marked = new ReadingsRepository(database.dataSources[0]).updateEach({ ...TENANT, ids: ['a'], pairs });
    await eventually(isWaiting);
    expect(await run('m')).toMatchObject({ deleted: ['a'] });
    await other.commitTransaction();
    expect(await marked).toMatchObject({ updated: ['a'] });
  });
});
