import { notification } from '@app/testing/system/notification';
import type { HttpAnswer, System } from '@app/testing/system/system';

export const notificationsAdd = (system: () => System): void =>
  describe('notifications/add', () => {
    const add = (data: object, headers?: Record<string, string>) => system().call('notifications/add', data, headers);
    const get = async (filters: object, headers?: Record<string, string>) =>
      (await system().call('notifications/get', { organizationId: 'org', ...filters }, headers)).body.result?.data as Record<
        string,
        unknown
      >[];
    const failure = ({ status, body }: HttpAnswer) => [status, body.error?.status];

    it('answers in the format of the API, and the next get returns the notification as sent', async () => {
      const sent = {
        organizationId: 'org',
        documentId: 'shape',
        locationId: 'page 1',
        actionUser: { userId: 'actor', name: 'Ada', email: 'ada@example.com', later: 'dropped' },
        notificationId: 'shape 1/é',
        displayHeadlineMessageTemplate: '{actionUser} mentioned {recipientUser} in {place} {unknown}',
        displayHeadlineMessageTemplateData: {
          actionUser: { userId: 'actor', name: 'Ada', email: 'ada@example.com' },
          recipientUser: { userId: 'reader' },
          place: 'the {place}',
        },
        displayBodyMessage: 'line 1\nline 2 <b>&amp;</b> 👍',
        notifyUsers: [{ userId: 'reader', email: 'reader@example.com' }, { userId: '__proto__' }, { userId: 'reader' }],
        notificationSourceData: { annotation: { id: 7, tags: ['a', null, true, 1.5, {}] }, '': 0 },
      };
      const before = Date.now();
      const answer = await add(sent);
      expect(answer.status).toBe(200);
      expect(answer.body).toEqual({
        result: {
          status: 'success',
          message: 'Notification added successfully.',
          data: { success: true, message: 'Notification added successfully.' },
        },
      });
      expect(answer.headers.get('x-notification-id')).toBe(encodeURIComponent('shape 1/é'));

      const [item, ...rest] = await get({ documentId: 'shape' });
      expect(rest).toEqual([]);
      const named = JSON.parse('{"reader":true,"__proto__":true}') as object;
      expect(JSON.parse(JSON.stringify(item))).toEqual({
        id: 'shape 1/é',
        notificationSource: 'custom',
        notificationSourceData: sent.notificationSourceData,
        actionUser: { userId: 'actor', name: 'Ada', email: 'ada@example.com' },
        displayBodyMessage: sent.displayBodyMessage,
        displayHeadlineMessageTemplate: sent.displayHeadlineMessageTemplate,
        displayHeadlineMessageTemplateData: sent.displayHeadlineMessageTemplateData,
        metadata: { apiKey: 'demo-key', organizationId: 'org', documentId: 'shape', locationId: 'page 1' },
        notifyUsers: named,
        notifyUsersByUserId: named,
        timestamp: expect.any(Number) as number,
      });
      expect(item?.timestamp).toBeGreaterThanOrEqual(before - 1000);
      expect(item?.timestamp).toBeLessThanOrEqual(Date.now() + 1000);
    });

    it('creates an id that begins with the time, and returns missing fields as empty', async () => {
      const answer = await add(notification({ documentId: 'least' }));
      expect(answer.headers.get('x-notification-id')).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7/);
      const [item] = await get({ documentId: 'least' });
      expect(item).toEqual({
        id: answer.headers.get('x-notification-id'),
        notificationSource: 'custom',
        notificationSourceData: {},
        actionUser: { userId: 'actor', name: '', email: '' },
        displayBodyMessage: '',
        displayHeadlineMessageTemplate: 'Hello',
        displayHeadlineMessageTemplateData: {},
        metadata: { apiKey: 'demo-key', organizationId: 'org', documentId: 'least' },
        notifyUsers: {},
        notifyUsersByUserId: {},
        timestamp: expect.any(Number) as number,
      });
    });

    it('accepts a plain string for recipientUser', async () => {
      await add(notification({ documentId: 'plain', displayHeadlineMessageTemplateData: { recipientUser: 'everyone' } }));
      const [item] = await get({ documentId: 'plain' });
      expect(item?.displayHeadlineMessageTemplateData).toEqual({ recipientUser: 'everyone' });
    });

    it('notifies all when no user is named, else only the named users; notifyAll overrides this', async () => {
      const cases = [
        ['absent, no user named', {}, true],
        ['absent, empty list', { notifyUsers: [] }, true],
        ['absent, a user named', { notifyUsers: [{ userId: 'named' }] }, false],
        ['true, a user named', { notifyUsers: [{ userId: 'named' }], notifyAll: true }, true],
        ['false, no user named', { notifyAll: false }, false],
      ] as const;
      for (const [notificationId, differences] of cases) {
        await add(notification({ organizationId: 'all', notificationId, ...differences }));
      }
      const users = ['somebody', 'named'].map((userId) => ({ userId }));
      await system().call('users/add', { organizationId: 'all', users });
      const seen = async (userId: string) => (await get({ organizationId: 'all', userId })).map(({ id }) => id).sort();
      const toAll = cases.filter(([, , all]) => all).map(([id]) => id);
      expect(await seen('somebody')).toEqual([...toAll].sort());
      expect(await seen('named')).toEqual([...toAll, 'absent, a user named'].sort());
      expect(await seen('stranger')).toEqual([]);
    });

    it('stores one row for the same notificationId sent 100 times in parallel', async () => {
      const data = notification({ documentId: 'parallel', notificationId: 'same', notifyUsers: [{ userId: 'a' }] });
      const answers = await Promise.all(Array.from({ length: 100 }, () => add(data)));
      expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]));
      expect(await get({ documentId: 'parallel' })).toHaveLength(1);
    });

    it('accepts the same content again with any order of keys and create flags, and refuses other content', async () => {
      const data = notification({ notificationId: 'repeated', notificationSourceData: { a: 1, b: { c: 2, d: 3 } } });
      expect((await add(data)).status).toBe(200);
      const reordered = notification({
        createDocument: true,
        notificationSourceData: { b: { d: 3, c: 2 }, a: 1 },
        notificationId: 'repeated',
        later: 'ignored',
      });
      expect((await add(reordered)).status).toBe(200);
      expect(failure(await add({ ...data, displayBodyMessage: 'other' }))).toEqual([409, 'ALREADY_EXISTS']);
      expect(await get({ documentId: 'doc', notificationIds: ['repeated'] })).toHaveLength(1);
    });

    it('keeps equal ids of two organizations and of two tenants apart', async () => {
      const other = await system().createKey();
      const data = notification({ notificationId: 'mine', documentId: 'apart' });
      for (const headers of [{}, other]) {
        for (const organizationId of ['org', 'org2']) {
          expect((await add({ ...data, organizationId, displayBodyMessage: organizationId }, headers)).status).toBe(200);
        }
      }
      const [item, ...rest] = await get({ documentId: 'apart' }, other);
      expect(rest).toEqual([]);
      expect(item?.metadata).toMatchObject({ apiKey: other['x-svc-api-key'], organizationId: 'org' });
    });

    describe('createOrganization and createDocument', () => {
      it('false refuses a missing object and stores nothing', async () => {
        const data = notification({ organizationId: 'nowhere', notificationId: 'x' });
        expect(failure(await add({ ...data, createOrganization: false }))).toEqual([404, 'NOT_FOUND']);
        expect(failure(await add({ ...data, createDocument: false }))).toEqual([404, 'NOT_FOUND']);
        expect(await get({ organizationId: 'nowhere', documentId: 'doc' })).toEqual([]);
      });

      it('false accepts an object that a notification has named', async () => {
        await add(notification({ organizationId: 'named', documentId: 'd1' }));
        const strict = { organizationId: 'named', createOrganization: false, createDocument: false };
        expect((await add(notification({ ...strict, documentId: 'd1' }))).status).toBe(200);
        expect(failure(await add(notification({ ...strict, documentId: 'd2' })))).toEqual([404, 'NOT_FOUND']);
        expect((await add(notification({ ...strict, documentId: 'd2', createDocument: true }))).status).toBe(200);
      });

      it('false accepts an object that users/add has named', async () => {
        await system().call('users/add', { organizationId: 'by-users', documentId: 'd1', users: [{ userId: 'u' }] });
        const strict = { organizationId: 'by-users', createOrganization: false, createDocument: false };
        expect((await add(notification({ ...strict, documentId: 'd1' }))).status).toBe(200);
        expect(failure(await add(notification({ ...strict, documentId: 'd2' })))).toEqual([404, 'NOT_FOUND']);
      });

      it('false refuses an object of another tenant', async () => {
        const other = await system().createKey();
        await add(notification({ organizationId: 'foreign' }), other);
        expect(failure(await add(notification({ organizationId: 'foreign', createOrganization: false })))).toEqual([
          404,
          'NOT_FOUND',
        ]);
      });
    });

    describe('with an Idempotency-Key', () => {
      it('stores once and returns the first id again', async () => {
        const headers = { 'idempotency-key': 'key 1' };
        const data = notification({ documentId: 'key' });
        const answers = await Promise.all(Array.from({ length: 20 }, () => add(data, headers)));
        expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200));
        const ids = new Set(answers.map((answer) => answer.headers.get('x-notification-id')));
        expect((await get({ documentId: 'key' })).map(({ id }) => id)).toEqual([...ids]);
      });

      it('refuses another request under the same key', async () => {
        const headers = { 'idempotency-key': 'key 2' };
        await add(notification({ documentId: 'key2' }), headers);
        expect(failure(await add(notification({ documentId: 'key2', displayBodyMessage: 'other' }), headers))).toEqual([
          400,
          'FAILED_PRECONDITION',
        ]);
        expect(await get({ documentId: 'key2' })).toHaveLength(1);
      });

      it('is checked before existence', async () => {
        const headers = { 'idempotency-key': 'key 3' };
        await add(notification({ documentId: 'key3' }), headers);
        const missing = notification({ organizationId: 'not there', createOrganization: false });
        expect(failure(await add(missing, headers))).toEqual([400, 'FAILED_PRECONDITION']);
      });

      it('is refused when it is malformed', async () => {
        for (const key of ['', 'x'.repeat(256), 'ümlaut']) {
          expect(failure(await add(notification(), { 'idempotency-key': key }))).toEqual([400, 'INVALID_ARGUMENT']);
        }
      });
    });
  });
