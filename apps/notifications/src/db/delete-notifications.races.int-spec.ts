import type { QueryRunner } from 'typeorm';
import { eventually } from '@app/testing/eventually';
import { aNotification, testDatabase } from '../../test/notifications';
import { DeleteNotificationsRepository, type Deletion } from './delete-notifications.repository';
import { InsertNotificationsRepository } from './insert-notifications.repository';

describe('a deletion that waits for another transaction', () => {
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
    const deletion: Deletion = { apiKey: 'tenant', organizationId: 'org', messageId, ids: ['a'] };
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
});
