import type { System } from '@app/testing/system/system';

const ANSWER = { status: 'success', message: 'Data deletion process has been initiated.', data: {} };
const ids = (count: number) => Array.from({ length: count }, (_, n) => `erased ${n}`);

/** The work in the background is the subject of events.e2e-spec.ts. */
export const usersDataDelete = (system: () => System): void =>
  describe('users/data/delete', () => {
    const add = async (organizationId: string, userIds: string[], headers?: Record<string, string>) => {
      const users = userIds.map((userId) => ({ userId, name: `N ${userId}` }));
      expect((await system().call('users/add', { organizationId, users }, headers)).status).toBe(200);
    };
    const erase = (data: object, headers?: Record<string, string>) => system().call('users/data/delete', data, headers);
    const erased = async (data: object, headers?: Record<string, string>) => {
      const { status, body } = await erase(data, headers);
      expect([status, body]).toEqual([200, { result: ANSWER }]);
    };
    const shown = async (organizationId: string, headers?: Record<string, string>) => {
      const { body } = await system().call('users/get', { organizationId }, headers);
      return (body.result?.data as { userId: string }[]).map(({ userId }) => userId);
    };

    it('shows nothing of 100 users in any organization, from the answer on', async () => {
      const userIds = ids(100);
      for (const organizationId of ['erasures', 'more erasures']) await add(organizationId, [userIds[0], userIds[99], 'stays']);
      await erased({ userIds: [...userIds.slice(1), userIds[0]] });
      expect([await shown('erasures'), await shown('more erasures')]).toEqual([['stays'], ['stays']]);
    });

    it('leaves other organizations and other tenants', async () => {
      const stranger = await system().createKey();
      for (const organizationId of ['named', 'other']) await add(organizationId, ['erased here']);
      await add('named', ['erased here'], stranger);
      await erased({ userIds: ['erased here', 'erased here'], organizationIds: ['named', 'unknown'] });
      expect([await shown('named'), await shown('other'), await shown('named', stranger)]).toEqual([
        [],
        ['erased here'],
        ['erased here'],
      ]);
    });

    it('repeats an answer by Idempotency-Key, and refuses another request under it', async () => {
      const key = { 'idempotency-key': 'erased once' };
      const request = { userIds: ['erased once'] };
      await add('repeated', request.userIds);
      await erased(request, key);
      await add('repeated', request.userIds);
      await erased(request, key);
      expect(await shown('repeated')).toEqual(request.userIds);
      const { status, body } = await erase({ userIds: ['another'] }, key);
      expect([status, body.error?.status]).toEqual([400, 'FAILED_PRECONDITION']);
    });

    it.each([
      ['without userIds', {}, 'data.userIds is required and must be an array'],
      ['without a user', { userIds: [] }, 'data.userIds must not be empty'],
      ['101 users', { userIds: ids(101) }, 'data.userIds must have at most 100 entries'],
      ['a blank user', { userIds: ['u', ' '] }, 'data.userIds[1] must not be blank'],
      ['no organization', { userIds: ['u'], organizationIds: [] }, 'data.organizationIds must not be empty'],
      [
        '1001 organizations',
        { userIds: ['u'], organizationIds: ids(1001) },
        'data.organizationIds must have at most 1000 entries',
      ],
      ['an organization that is a number', { userIds: ['u'], organizationIds: [1] }, 'data.organizationIds[0] must be a string'],
    ])('refuses a call %s', async (_, data, message) => {
      const { status, body } = await erase(data);
      expect([status, body.error]).toEqual([
        400,
        { status: 'INVALID_ARGUMENT', message, details: [{ field: message.split(' ')[0], message }] },
      ]);
    });
  });
