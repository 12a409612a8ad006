import { randomUUID } from 'node:crypto';
import { connect, type ChannelModel, type ConfirmChannel } from 'amqplib';
import { Client } from 'pg';
import { eventually } from '@app/testing/eventually';
import { notification } from '@app/testing/system/notification';
import type { System } from '@app/testing/system/system';

const ORGANIZATION = { organizationId: 'ends' };
/** An event that its process does not publish at once waits for 5 s, until another process looks at the outbox. */
const BEFORE_SWEEP_MS = 4500;

/** users/delete, users/get and documents/set, and what notifications/get makes of them. */
export const membershipsEnd = (system: () => System): void =>
  describe('users/delete, users/get and documents/set', () => {
    let connection: ChannelModel;
    let channel: ConfirmChannel;
    let sql: Client;

    beforeAll(async () => {
      connection = await connect(system().amqpUrl);
      channel = await connection.createConfirmChannel();
      sql = new Client({ connectionString: system().databaseUrl });
      await sql.connect();
    });
    afterAll(async () => {
      await sql?.end();
      await connection?.close();
    });

    const succeed = async (...call: Parameters<System['call']>) => {
      const { status, body } = await system().call(...call);
      expect({ status, error: body.error }).toEqual({ status: 200, error: undefined });
      return body.result!;
    };
    const add = (userIds: string[], where: { documentId?: string; folderId?: string } = {}) =>
      succeed('users/add', { ...ORGANIZATION, ...where, users: userIds.map((userId) => ({ userId, name: `N ${userId}` })) });
    const remove = (userIds: string[], where: { documentId?: string; folderId?: string } = {}) =>
      succeed('users/delete', { ...ORGANIZATION, ...where, userIds });
    const get = async (request: object = {}) =>
      (await succeed('users/get', { ...ORGANIZATION, ...request })).data as { userId: string }[];
    const ids = async (request?: object) => (await get(request)).map(({ userId }) => userId);
    const notify = (documentId: string, more: object = {}) =>
      succeed('notifications/add', notification({ ...ORGANIZATION, documentId, notificationId: documentId, ...more }));
    const seen = async (userId: string) =>
      ((await succeed('notifications/get', { ...ORGANIZATION, userId })).data as { id: string }[]).map(({ id }) => id).sort();

    it('reads, removes and adds again', async () => {
      await add(['a', 'b', 'c']);
      await add(['a', 'b'], { documentId: 'd' });
      await add(['a'], { folderId: 'f' });
      expect(await get({ userIds: ['b', 'nobody'] })).toEqual([{ userId: 'b', name: 'N b', email: '', initial: 'N' }]);
      expect([await ids(), await ids({ documentId: 'd' }), await ids({ folderId: 'f' })]).toEqual([
        ['a', 'b', 'c'],
        ['a', 'b'],
        ['a'],
      ]);
      expect(await remove(['b', 'c'], { documentId: 'd' })).toEqual({
        status: 'success',
        message: 'User(s) deleted successfully.',
        data: { b: { success: true, message: 'User removed.' }, c: { success: false, message: 'User does not exist.' } },
      });
      await remove(['a']);
      expect([await ids(), await ids({ documentId: 'd' }), await ids({ folderId: 'f' })]).toEqual([['b', 'c'], [], []]);
      await add(['a'], { folderId: 'f' });
      expect([await ids(), await ids({ folderId: 'f' })]).toEqual([['b', 'c'], ['a']]);
      const { pageToken } = await succeed('users/get', { ...ORGANIZATION, pageSize: 1 });
      expect(await ids({ pageToken })).toEqual(['c']);
    });

    it('notifications/get follows at once, and no old event undoes it', async () => {
      await notify('plain', { notifyAll: true });
      await notify('named', { notifyUsers: [{ userId: 'u' }] });
      await add(['u']);
      expect(await seen('u')).toEqual(['named', 'plain']);
      await remove(['u']);
      await eventually(async () => (await seen('u')).join() === 'named', BEFORE_SWEEP_MS);
      const witness = { userId: 'witness', version: 1, membership: 1 };
      const data = { ...ORGANIZATION, users: [{ userId: 'u', version: 1, membership: 1 }, witness] };
      const [type, id] = ['user.added.v1', randomUUID()];
      const time = new Date().toISOString();
      const event = { specversion: '1.0', id, source: '/users', type, subject: 'ends', time, apikey: 'demo-key', data };
      const properties = { messageId: id, mandatory: true, headers: { 'x-api-key': 'demo-key' } };
      channel.publish('events.own', type, Buffer.from(JSON.stringify(event)), properties);
      const copied = `SELECT FROM notifications.members m JOIN notifications.organizations o ON o.id = m.organization
        WHERE o.organization_id = 'ends' AND m.user_id = 'witness'`;
      await eventually(async () => (await sql.query(copied)).rowCount);
      expect(await seen('u')).toEqual(['named']);
      await add(['u']);
      await eventually(async () => (await seen('u')).join() === 'named,plain', BEFORE_SWEEP_MS);
    });

    it('repeats an answer by Idempotency-Key, and refuses another request under it', async () => {
      const key = { 'idempotency-key': 'once' };
      await add(['k']);
      const request = { ...ORGANIZATION, userIds: ['k'] };
      const first = await succeed('users/delete', request, key);
      await add(['k']);
      expect(await succeed('users/delete', request, key)).toEqual(first);
      expect(await ids({ userIds: ['k'] })).toEqual(['k']);
      const { status, body } = await system().call('users/delete', { ...request, userIds: ['l'] }, key);
      expect([status, body.error?.status]).toEqual([400, 'FAILED_PRECONDITION']);
    });

    it('sets a document over HTTP', async () => {
      const message = 'Document set successfully.';
      const request = { ...ORGANIZATION, documentId: 'set', folderId: 'f', access: 'restricted' };
      const first = await succeed('documents/set', request);
      const version = first.version as number;
      const data = { success: true, message, access: 'restricted', folderId: 'f', version };
      expect(first).toEqual({ status: 'success', message, data, version, changed: true });
      expect(await succeed('documents/set', request)).toEqual({ ...first, changed: false });
      await add(['s']);
      await notify('set', { notifyAll: true });
      await eventually(async () => !(await seen('s')).includes('set'), BEFORE_SWEEP_MS);
      await succeed('documents/set', { ...ORGANIZATION, documentId: 'set', access: 'public' });
      await eventually(async () => (await seen('s')).includes('set'), BEFORE_SWEEP_MS);
    });

    it.each([
      ['users/delete', { ...ORGANIZATION, userIds: [] }, 'data.userIds must not be empty'],
      ['users/delete', ORGANIZATION, 'data.userIds is required and must be an array'],
      ['users/delete', { ...ORGANIZATION, userIds: ['a', ''] }, 'data.userIds[1] must not be blank'],
      [
        'users/get',
        { ...ORGANIZATION, pageToken: 'x' },
        'data.pageToken must be a token that an earlier page of this operation returned',
      ],
      ['users/get', { ...ORGANIZATION, pageSize: 0 }, 'data.pageSize must be a whole number from 1 to 1000'],
      [
        'documents/set',
        { ...ORGANIZATION, documentId: 'd', access: 'secret' },
        'data.access must be one of: public, organizationPrivate, restricted',
      ],
    ] as const)('%s refuses %j', async (operation, data, message) => {
      const { status, body } = await system().call(operation, data);
      expect([status, body.error?.status, body.error?.message]).toEqual([400, 'INVALID_ARGUMENT', message]);
    });
  });
