import { createHash } from 'node:crypto';
import { Client } from 'pg';
import type { System } from '@app/testing/system/system';

const md5 = (text: string) => createHash('md5').update(text).digest('hex');

export const usersAdd = (system: () => System): void =>
  describe('users/add', () => {
    let sql: Client;

    beforeAll(async () => {
      sql = new Client({ connectionString: system().databaseUrl });
      await sql.connect();
    });
    afterAll(async () => {
      await sql.end();
    });

    const add = (data: object, headers?: Record<string, string>) => system().call('users/add', data, headers);
    const entries = (answer: Awaited<ReturnType<typeof add>>) =>
      answer.body.result?.data as Record<string, { success: boolean; id: string; message: string }>;

    /** Memberships of a user of an organization, read from the tables. */
    const memberships = async (organizationId: string, userId: string): Promise<string[]> => {
      const { rows } = await sql.query<{ at: string }>(
        `SELECT 'organization' AS at FROM users.organizations o JOIN users.organization_members m ON m.organization = o.id
         WHERE o.api_key = 'demo-key' AND o.organization_id = $1 AND m.user_id = $2
       UNION ALL SELECT 'folder ' || m.folder_id FROM users.organizations o JOIN users.folder_members m ON m.organization = o.id
         WHERE o.api_key = 'demo-key' AND o.organization_id = $1 AND m.user_id = $2
       UNION ALL SELECT 'document ' || m.document_id FROM users.organizations o JOIN users.document_members m ON m.organization = o.id
         WHERE o.api_key = 'demo-key' AND o.organization_id = $1 AND m.user_id = $2 ORDER BY 1`,
        [organizationId, userId],
      );
      return rows.map(({ at }) => at);
    };

    const stored = async (organizationId: string, userId: string) => {
      const { rows } = await sql.query<{ name: string; email: string; initial: string }>(
        `SELECT u.name, u.email, u.initial FROM users.organizations o JOIN users.users u ON u.organization = o.id
       WHERE o.api_key = 'demo-key' AND o.organization_id = $1 AND u.user_id = $2`,
        [organizationId, userId],
      );
      return rows[0];
    };

    it('answers in the format of the API, with the user in a new organization', async () => {
      const answer = await add({ organizationId: 'shape', users: [{ userId: 'u1', name: 'Ada', email: 'ada@example.com' }] });
      expect(answer.status).toBe(200);
      expect(answer.headers.get('content-type')).toMatch(/^application\/json/);
      expect(answer.headers.get('x-request-id')).toMatch(/^\S+$/);
      expect(answer.body).toEqual({
        result: {
          status: 'success',
          message: 'User(s) processed successfully.',
          data: { u1: { success: true, id: md5('u1'), message: 'User added.' } },
        },
      });
      expect(await stored('shape', 'u1')).toEqual({ name: 'Ada', email: 'ada@example.com', initial: 'A' });
    });

    it('adds to the organization, the folder or the document and to nothing else (rules 1 to 4)', async () => {
      const users = [{ userId: 'u' }];
      await add({ organizationId: 'levels', folderId: 'f', users });
      expect(await memberships('levels', 'u')).toEqual(['folder f']);
      await add({ organizationId: 'levels', documentId: 'd', users });
      expect(await memberships('levels', 'u')).toEqual(['document d', 'folder f']);
      await add({ organizationId: 'levels', documentId: 'd2', folderId: 'f2', users });
      expect(await memberships('levels', 'u')).toEqual(['document d', 'document d2', 'folder f']);
      await add({ organizationId: 'levels', users });
      expect(await memberships('levels', 'u')).toEqual(['document d', 'document d2', 'folder f', 'organization']);
    });

    it('says "updated" for a user who is already at that level, and only then', async () => {
      const users = [{ userId: 'u' }];
      const message = async (data: object) => entries(await add({ organizationId: 'again', users, ...data })).u?.message;
      expect(await message({})).toBe('User added.');
      expect(await message({})).toBe('User updated.');
      expect(await message({ documentId: 'd' })).toBe('User added.');
      expect(await message({ documentId: 'd' })).toBe('User updated.');
      expect(await message({ documentId: 'e' })).toBe('User added.');
      expect(await message({ folderId: 'd' })).toBe('User added.');
    });

    it('overwrites the values that are sent and keeps the others', async () => {
      await add({ organizationId: 'fields', users: [{ userId: 'u', name: 'Ada', email: 'ada@example.com', initial: 'X' }] });
      await add({ organizationId: 'fields', users: [{ userId: 'u', name: 'Bea' }] });
      expect(await stored('fields', 'u')).toEqual({ name: 'Bea', email: 'ada@example.com', initial: 'X' });
    });

    it('makes an initial of the first grapheme of the name (rule 6)', async () => {
      const names: Record<string, string> = { plain: 'ada', combined: 'e\u0301lise', family: '👩‍👩‍👧 Smith', sharp: 'ßeta' };
      await add({
        organizationId: 'initials',
        users: [...Object.entries(names).map(([userId, name]) => ({ userId, name })), { userId: 'none' }],
      });
      expect((await stored('initials', 'plain'))?.initial).toBe('A');
      expect((await stored('initials', 'combined'))?.initial).toBe('E\u0301');
      expect((await stored('initials', 'family'))?.initial).toBe('👩‍👩‍👧');
      expect((await stored('initials', 'none'))?.initial).toBeNull();
    });

    it('stores the others when one entry fails, and reports the number of failures', async () => {
      const answer = await add({
        organizationId: 'partial',
        users: [
          { userId: 'good', email: 'good@example.com' },
          { userId: 'no-at', email: 'example.com' },
          { userId: 'two-at', email: 'a@b@c' },
          { userId: 'space', email: 'a b@c' },
          { userId: 'long', name: 'x'.repeat(321) },
          { userId: 'control', name: 'a\tb' },
        ],
      });
      expect(answer.status).toBe(200);
      expect(answer.body.result?.status).toBe('success');
      expect(answer.body.result?.message).toContain('5');
      const { good, ...bad } = entries(answer);
      expect(good).toEqual({ success: true, id: md5('good'), message: 'User added.' });
      expect(Object.keys(bad)).toEqual(['no-at', 'two-at', 'space', 'long', 'control']);
      for (const [userId, entry] of Object.entries(bad)) {
        expect(entry).toMatchObject({ success: false, id: md5(userId) });
        expect(entry.message).toMatch(/^(name|email) must/);
        expect(await stored('partial', userId)).toBeUndefined();
      }
    });

    it('has one entry for a userId that occurs twice, with the later values', async () => {
      const answer = await add({
        organizationId: 'twice',
        users: [
          { userId: 'u', name: 'First', email: 'first@example.com' },
          { userId: 'u', name: 'Second' },
        ],
      });
      expect(Object.keys(entries(answer))).toEqual(['u']);
      expect(await stored('twice', 'u')).toMatchObject({ name: 'Second' });
    });

    it('accepts unusual identifiers', async () => {
      const userIds = ['__proto__', 'constructor', '👩‍👩‍👧', ' padded ', "'; DROP TABLE users; --", 'é'.repeat(128), '0'];
      const answer = await add({ organizationId: '__proto__', users: userIds.map((userId) => ({ userId })) });
      expect(answer.status).toBe(200);
      expect(Object.keys(entries(answer)).sort()).toEqual([...userIds].sort());
      expect(Object.getOwnPropertyDescriptor(entries(answer), '__proto__')?.value).toMatchObject({ success: true });
    });

    it('accepts 1000 users in one call', async () => {
      const users = Array.from({ length: 1000 }, (_, index) => ({
        userId: `u${index}`,
        name: `User ${index}`,
        email: `u${index}@example.com`,
      }));
      const answer = await add({ organizationId: 'thousand', documentId: 'd', users });
      expect(Object.values(entries(answer)).filter(({ message }) => message === 'User added.')).toHaveLength(1000);
      const { rows } = await sql.query<{ count: string }>(
        `SELECT count(*) FROM users.document_members m JOIN users.organizations o ON o.id = m.organization WHERE o.organization_id = 'thousand'`,
      );
      expect(rows[0]?.count).toBe('1000');
    });

    it('returns the first answer again for an Idempotency-Key, and refuses another request with it', async () => {
      const headers = { 'idempotency-key': 'users-1' };
      const data = { organizationId: 'idempotent', users: [{ userId: 'u' }] };
      const answers = await Promise.all(Array.from({ length: 10 }, () => add(data, headers)));
      for (const answer of answers) expect(entries(answer).u?.message).toBe('User added.');
      const other = await add({ ...data, users: [{ userId: 'v' }] }, headers);
      expect([other.status, other.body.error?.status]).toEqual([400, 'FAILED_PRECONDITION']);
      expect(await stored('idempotent', 'v')).toBeUndefined();
    });
  });
