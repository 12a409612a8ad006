import { eventually } from '@app/testing/eventually';
import { notification } from '@app/testing/system/notification';
import type { System } from '@app/testing/system/system';

interface Inbox {
  data: { id: string; read: boolean; metadata: object }[];
  unread: { count: number; more: boolean };
  asOf: number;
  pageToken?: string;
}

export const inbox = (system: () => System): void =>
  describe('notifications/inbox and notifications/update', () => {
    const organizationId = 'inboxes';
    const add = (notificationId: string, more: object = {}) =>
      system().call(
        'notifications/add',
        notification({ organizationId, notificationId, notifyUsers: [{ userId: 'reader' }], ...more }),
      );
    const read = async (filters: object = {}) => {
      const { status, body } = await system().call('notifications/inbox', { organizationId, userId: 'reader', ...filters });
      expect([status, body.error]).toEqual([200, undefined]);
      return body.result as unknown as Inbox;
    };
    const update = async (data: object) => {
      const { status, body } = await system().call('notifications/update', { organizationId, ...data });
      expect([status, body.error]).toEqual([200, undefined]);
      return body.result as unknown as { data: Record<string, object>; readUpTo?: number };
    };
    const shown = ({ data }: Inbox) => data.map(({ id, read: isRead }) => `${id} ${isRead ? 'read' : 'unread'}`).sort();

    it('shows what get shows, with what the user has read, and counts the rest', async () => {
      await system().call('users/add', { organizationId, users: [{ userId: 'reader' }] });
      for (const id of ['a', 'b']) await add(id);
      await add('c', { notifyUsers: [], locationId: 'here' });
      const { body } = await system().call('notifications/get', { organizationId, userId: 'reader' });
      const found = await read();
      expect(found.data).toEqual((body.result?.data as object[]).map((one) => ({ ...one, read: false })));
      expect([found.unread, found.pageToken]).toEqual([{ count: 3, more: false }, undefined]);
      const updated = await update({ notifications: [{ id: 'a', readByUserIds: ['reader'] }, { id: 'unknown' }] });
      expect(updated.data).toEqual({
        a: { success: true, message: 'Notification updated.' },
        unknown: { success: false, message: 'Failed to update notification.' },
      });
      expect(shown(await read())).toEqual(['a read', 'b unread', 'c unread']);
      expect(shown(await read({ unread: true, locationId: 'here' }))).toEqual(['c unread']);
      expect(await read({ pageSize: 0 })).toMatchObject({ data: [], unread: { count: 2, more: false } });
    });

    it('marks everything up to a moment, and nothing later, also when the call is repeated', async () => {
      const { asOf } = await read();
      const upTo = { userId: 'reader', readUpTo: asOf };
      expect(await update(upTo)).toMatchObject({ data: {}, readUpTo: asOf });
      await eventually(async () => (await read({ pageSize: 0 })).asOf > asOf);
      await add('d');
      await update({ notifications: [{ id: 'b', unreadByUserIds: ['reader'] }] });
      expect(await update(upTo)).toMatchObject({ readUpTo: asOf });
      const found = await read();
      expect(shown(found)).toEqual(['a read', 'b unread', 'c read', 'd unread']);
      expect(found.unread).toEqual({ count: 2, more: false });
      await system().call('notifications/delete', { organizationId, notificationIds: ['b'] });
      expect(shown(await read({ unread: true }))).toEqual(['d unread']);
    });

    it('goes through the inbox in pages', async () => {
      const first = await read({ pageSize: 2 });
      const second = await read({ pageSize: 2, pageToken: first.pageToken });
      expect([...shown(first), ...shown(second)].sort()).toEqual(['a read', 'c read', 'd unread']);
      expect(second.pageToken).toBeUndefined();
      expect(shown(await read({ pageSize: 1000 }))).toEqual(['a read', 'c read', 'd unread']);
    });

    it('belongs to one tenant', async () => {
      const stranger = await system().createKey();
      const foreign = await system().call(
        'notifications/update',
        { organizationId, notifications: [{ id: 'd', readByUserIds: ['reader'] }] },
        stranger,
      );
      expect(foreign.body.result?.data).toEqual({ d: { success: false, message: 'Failed to update notification.' } });
      const others = await system().call('notifications/inbox', { organizationId, userId: 'reader' }, stranger);
      expect(others.body.result).toMatchObject({ data: [], unread: { count: 0, more: false } });
      expect(shown(await read({ unread: true }))).toEqual(['d unread']);
    });

    it('marks for 1000 users in all lists, and refuses one more', async () => {
      const users = Array.from({ length: 500 }, (_, n) => `user ${n}`);
      // A user who is twice in one list counts once.
      const notifications = ['a', 'd'].map((id) => ({ id, readByUserIds: [...users, ...users] }));
      expect(Object.keys((await update({ notifications })).data)).toEqual(['a', 'd']);
      const more = [...notifications, { id: 'c', unreadByUserIds: ['user 0'] }];
      const { status, body } = await system().call('notifications/update', { organizationId, notifications: more });
      const message = 'data.notifications must have at most 1000 users in all their lists';
      expect([status, body.error?.message]).toEqual([400, message]);
    });

    it.each([-1, 1001])('refuses a page of %d', async (pageSize) => {
      const { status, body } = await system().call('notifications/inbox', { organizationId, userId: 'reader', pageSize });
      expect([status, body.error?.message]).toEqual([400, 'data.pageSize must be a whole number from 0 to 1000']);
    });

    const EITHER = 'data must have either notifications, or userId and readUpTo';
    it.each([
      [{}, EITHER],
      [{ userId: 'u' }, EITHER],
      [{ notifications: [{ id: 'a' }], userId: 'u', readUpTo: 1 }, EITHER],
      [{ userId: 'u', readUpTo: 1, documentId: 'd' }, 'only allowed together with notifications'],
      [{ notifications: [{ id: 'a' }, { id: 'a' }] }, 'data.notifications[1].id occurs twice'],
      [
        { notifications: [{ id: 'a', displayBodyMessage: 'b' }] },
        'data.notifications[0].displayBodyMessage cannot be changed: delete the notification and add another',
      ],
      [{ notifications: [{ id: 'a', readByUserIds: ['u'], unreadByUserIds: ['u'] }] }, 'data.notifications[0] has a user in'],
    ])('refuses to update %j', async (data, message) => {
      const { status, body } = await system().call('notifications/update', { organizationId, ...data });
      expect([status, body.error?.message]).toEqual([400, expect.stringContaining(message)]);
    });
  });
