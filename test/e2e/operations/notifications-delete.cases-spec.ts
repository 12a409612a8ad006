import { notification } from '@app/testing/system/notification';
import type { System } from '@app/testing/system/system';

export const notificationsDelete = (system: () => System): void =>
  describe('notifications/delete', () => {
    const call = (operation: 'add' | 'get' | 'delete', data: object, headers?: Record<string, string>) =>
      system().call(`notifications/${operation}`, { organizationId: 'deletions', ...data }, headers);
    const remove = async (filters: object) => {
      const { status, body } = await call('delete', filters);
      expect([status, body]).toEqual([200, { result: expect.anything() }]);
      return body.result as { data: Record<string, unknown>; pageToken?: string };
    };
    const add = (notificationId: string, documentId: string, more: object = {}) =>
      call(
        'add',
        notification({ organizationId: 'deletions', notificationId, documentId, notifyUsers: [{ userId: 'reader' }], ...more }),
      );
    const ids = async (filters: object) => {
      const { body } = await call('get', filters);
      return (body.result?.data as { id: string }[]).map(({ id }) => id).sort();
    };

    it('takes notifications out of every get, and says so again', async () => {
      for (const id of ['a', 'b', '__proto__']) await add(id, 'one');
      const first = await remove({ notificationIds: ['a', '__proto__', 'unknown', 'unknown'], documentId: 'one' });
      expect(first).toEqual({
        status: 'success',
        message: 'Notification(s) deleted successfully.',
        data: JSON.parse(
          `{"a":{"success":true,"message":"Notification deleted."},"__proto__":{"success":true,"message":"Notification deleted."},
            "unknown":{"success":false,"message":"Failed to delete notification."}}`,
        ) as unknown,
      });
      for (const filters of [{ documentId: 'one' }, { userId: 'reader', documentId: 'one' }])
        expect(await ids(filters)).toEqual(['b']);
      expect(Object.keys((await remove({ notificationIds: ['a'] })).data)).toEqual(['a']);
    });

    it('keeps the id taken', async () => {
      await add('again', 'two');
      await remove({ documentId: 'two' });
      expect((await add('again', 'two')).status).toBe(200);
      expect((await add('again', 'two', { displayHeadlineMessageTemplate: 'Other' })).body.error?.status).toBe('ALREADY_EXISTS');
      expect(await ids({ documentId: 'two' })).toEqual([]);
    });

    it('deletes a document page by page', async () => {
      await Promise.all(Array.from({ length: 300 }, (_, n) => add(`n${n}`, 'many')));
      const first = await remove({ documentId: 'many' });
      expect([Object.keys(first.data).length, (await ids({ documentId: 'many' })).length]).toEqual([256, 44]);
      const second = await remove({ documentId: 'many', pageSize: 256, pageToken: first.pageToken });
      expect([Object.keys(second.data).length, second.pageToken, await ids({ documentId: 'many' })]).toEqual([44, undefined, []]);
    });

    it('leaves notifications of other tenants with the same ids', async () => {
      await add('shared', 'three');
      const stranger = await system().createKey();
      expect((await call('delete', { documentId: 'three' }, stranger)).body.result?.data).toEqual({});
      const byId = await call('delete', { notificationIds: ['shared'] }, stranger);
      expect(byId.body.result?.data).toEqual({ shared: { success: false, message: 'Failed to delete notification.' } });
      expect(await ids({ documentId: 'three' })).toEqual(['shared']);
    });

    it.each([
      [{}, 'This combination of filters is not supported.'],
      [{ locationId: 'l' }, 'This combination of filters is not supported.'],
      [{ documentId: 'd', userId: 'u' }, 'data.userId is not a filter of a deletion.'],
      [{ documentId: 'd', notificationId: 'a' }, 'data.notificationId is not a field; did you mean notificationIds?'],
      [{ notificationIds: ['a'], pageToken: 'WzFd' }, 'data.pageToken is not allowed together with notificationIds'],
      [{ documentId: 'd', pageToken: 'WzFdAA' }, 'data.pageToken must be a token'],
      [{ documentId: 'd', pageSize: 0 }, 'data.pageSize must be a whole number from 1 to 256'],
      [{ documentId: 'd', pageSize: 257 }, 'data.pageSize must be a whole number from 1 to 256'],
    ])('refuses %j', async (filters, message) => {
      const { status, body } = await call('delete', filters);
      expect([status, body.error?.status, body.error?.message]).toEqual([
        400,
        'INVALID_ARGUMENT',
        expect.stringContaining(message),
      ]);
    });
  });
