import { notification } from '@app/testing/system/notification';
import type { System } from '@app/testing/system/system';

interface Item {
  id: string;
  timestamp: number;
}

export const notificationsGet = (system: () => System): void =>
  describe('notifications/get', () => {
    const ids = (items: Item[]) => items.map(({ id }) => id);

    beforeAll(async () => {
      await system().call('users/add', { organizationId: 'pages', users: [{ userId: 'u1' }, { userId: 'u2' }] });
      // Two documents x two locations (or none) x recipients. The ids contain the combination.
      for (const documentId of ['d1', 'd2']) {
        for (const locationId of [undefined, 'l1', 'l2']) {
          for (const to of ['u1', 'u2', 'all']) {
            const notificationId = `${documentId} ${locationId ?? '-'} ${to}`;
            const named = to !== 'all' && { notifyUsers: [{ userId: to }] };
            const data = notification({ organizationId: 'pages', documentId, locationId, notificationId, ...named });
            const answer = await system().call('notifications/add', data);
            expect(answer.status).toBe(200);
          }
        }
      }
    });

    const call = (filters: object, headers?: Record<string, string>) =>
      system().call('notifications/get', { organizationId: 'pages', ...filters }, headers);
    const get = async (filters: object) => {
      const { status, body } = await call(filters);
      expect(status).toBe(200);
      expect(body.result).toMatchObject({ status: 'success', message: 'Notification(s) retrieved successfully.' });
      return { items: body.result?.data as Item[], pageToken: body.result?.pageToken as string | undefined };
    };

    it.each<[object, string[]]>([
      [
        { documentId: 'd1' },
        ['d1 - all', 'd1 - u1', 'd1 - u2', 'd1 l1 all', 'd1 l1 u1', 'd1 l1 u2', 'd1 l2 all', 'd1 l2 u1', 'd1 l2 u2'],
      ],
      [{ documentId: 'd1', notificationIds: ['d1 - u1', 'd2 - u1', 'unknown'] }, ['d1 - u1']],
      [{ documentId: 'd1', locationId: 'l1' }, ['d1 l1 all', 'd1 l1 u1', 'd1 l1 u2']],
      [{ documentId: 'd1', locationId: 'l1', notificationIds: ['d1 l1 u1', 'd1 l2 u1'] }, ['d1 l1 u1']],
      [
        { userId: 'u1' },
        [
          ...['d1 - all', 'd1 - u1', 'd1 l1 all', 'd1 l1 u1', 'd1 l2 all', 'd1 l2 u1'],
          ...['d2 - all', 'd2 - u1', 'd2 l1 all', 'd2 l1 u1', 'd2 l2 all', 'd2 l2 u1'],
        ],
      ],
      [{ userId: 'u1', notificationIds: ['d1 - u1', 'd1 - u2', 'd2 - all'] }, ['d1 - u1', 'd2 - all']],
      [{ documentId: 'd2', userId: 'u2' }, ['d2 - all', 'd2 - u2', 'd2 l1 all', 'd2 l1 u2', 'd2 l2 all', 'd2 l2 u2']],
      [{ locationId: 'l2', userId: 'u2' }, ['d1 l2 all', 'd1 l2 u2', 'd2 l2 all', 'd2 l2 u2']],
      [{ documentId: 'd2', locationId: 'l2', userId: 'u2' }, ['d2 l2 all', 'd2 l2 u2']],
    ])('filters by %j', async (filters, expected) => {
      expect(ids((await get(filters)).items).sort()).toEqual([...expected].sort());
    });

    const names = ['documentId', 'locationId', 'userId', 'notificationIds'];
    const supported = new Set(['1', '9', '3', '11', '4', '12', '5', '6', '7']);
    const sets = Array.from({ length: 16 }, (_, bits) => bits).filter((bits) => !supported.has(String(bits)));
    it.each(sets.map((bits) => names.filter((_, index) => bits & (1 << index))))(
      'refuses the unsupported set %#',
      async (...filters) => {
        const values: Record<string, unknown> = {
          documentId: 'd1',
          locationId: 'l1',
          userId: 'u1',
          notificationIds: ['d1 - u1'],
        };
        const { status, body } = await call(Object.fromEntries(filters.map((name) => [name, values[name]])));
        expect([status, body.error?.status]).toEqual([400, 'INVALID_ARGUMENT']);
        expect(body.error?.message).toContain('documentId + locationId + notificationIds');
      },
    );

    it('orders by time, then id, newest first; asc is the exact reverse', async () => {
      const { items } = await get({ documentId: 'd1' });
      const sorted = [...items].sort((a, b) => b.timestamp - a.timestamp || (a.id < b.id ? 1 : -1));
      expect(items).toEqual(sorted);
      expect((await get({ documentId: 'd1', order: 'asc' })).items).toEqual([...items].reverse());
      expect((await get({ documentId: 'd1', order: 'desc' })).items).toEqual(items);
    });

    it.each(['asc', 'desc'])('pages through everything once, %s', async (order) => {
      const all = (await get({ userId: 'u1', order })).items;
      const paged: Item[] = [];
      let pageToken: string | undefined;
      do {
        const page = await get({ userId: 'u1', order, pageSize: 5, ...(pageToken && { pageToken }) });
        expect(page.items.length).toBeLessThanOrEqual(5);
        paged.push(...page.items);
        pageToken = page.pageToken;
      } while (pageToken);
      expect(paged).toEqual(all);
    });

    it('has no page token on the last page', async () => {
      expect((await get({ documentId: 'd1', pageSize: 9 })).pageToken).toBeUndefined();
      expect((await get({ documentId: 'd1', pageSize: 8 })).pageToken).toEqual(expect.any(String));
    });

    it('finds nothing in unknown places, for unknown users, for an empty list and for another tenant', async () => {
      const other = await system().createKey();
      expect((await get({ documentId: 'unknown' })).items).toEqual([]);
      expect((await get({ documentId: 'd1', notificationIds: [] })).items).toEqual([]);
      expect((await system().call('notifications/get', { organizationId: 'unknown', userId: 'u1' })).body.result?.data).toEqual(
        [],
      );
      expect((await call({ documentId: 'd1' }, other)).body.result?.data).toEqual([]);
      expect((await call({ userId: 'u1' }, other)).body.result?.data).toEqual([]);
    });

    it('ends a page at 4 MiB', async () => {
      const displayBodyMessage = 'x'.repeat(10_000);
      const notificationSourceData = { text: 'y'.repeat(60_000) };
      const displayHeadlineMessageTemplateData = { text: 'z'.repeat(60_000) };
      // One after the other: of forty large calls at once, a slow machine refuses some.
      for (let index = 0; index < 40; index++) {
        const place = { organizationId: 'pages', documentId: 'big', notificationId: `big ${index}` };
        const large = { displayBodyMessage, notificationSourceData, displayHeadlineMessageTemplateData };
        const { status } = await system().call('notifications/add', notification({ ...place, ...large }));
        expect(status).toBe(200);
      }
      const first = await get({ documentId: 'big' });
      expect(Buffer.byteLength(JSON.stringify(first.items))).toBeLessThanOrEqual(4 * 1024 * 1024);
      const second = await get({ documentId: 'big', pageToken: first.pageToken });
      expect(new Set([...ids(first.items), ...ids(second.items)]).size).toBe(40);
      expect(second.pageToken).toBeUndefined();
    });
  });
