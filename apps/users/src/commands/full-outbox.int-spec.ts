import { OutboxFull, OutboxRelay } from '@app/postgres/outbox/outbox';
import { eventually } from '@app/testing/eventually';
import { takeEvents } from '../db/outbox.repository';
import { users, usersOnDatabase } from '../../test/users';

const on = usersOnDatabase();

const refuse = () => Promise.reject(new Error('the broker takes nothing'));

beforeEach(async () => {
  await on.add({ organizationId: 'org', users: users('a') });
  await on.published();
  await on.dataSource.query(
    `INSERT INTO outbox (type, api_key, organization_id, data) VALUES ('user.added.v1', 'one', 'org', '{}')`,
  );
  await on.outbox.stop();
  on.outbox = new OutboxRelay(on.dataSource, { take: takeEvents, publish: refuse, maxEvents: 1 });
  on.outbox.start();
  await eventually(() => on.outbox.check() !== undefined);
});
afterEach(() => on.published());

it.each([
  ['users/add', () => on.add({ organizationId: 'org', users: users('b') })],
  ['users/delete', () => on.delete({ organizationId: 'org', userIds: ['a'] })],
  ['users/erase', () => on.erase({ userIds: ['a'] })],
  ['documents/set', () => on.setDocument({ organizationId: 'org', documentId: 'd' })],
])('%s waits while the outbox is full, and changes nothing', async (_, call) => {
  await expect(call()).rejects.toThrow(OutboxFull);
  expect(await on.organizationMembers()).toEqual(['one/org/a']);
  expect(await on.values('SELECT user_id FROM users WHERE left_version < version')).toEqual(['a']);
  expect(await on.values('SELECT document_id FROM documents')).toEqual([]);
  expect(await on.values('SELECT seq::text FROM outbox')).toHaveLength(1);
});
