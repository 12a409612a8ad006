import type { DataSource } from 'typeorm';
import { ApiKeyRevoked, ApiKeyRevokedData } from '@app/contracts/events.users';
import { validateBody } from '@app/contracts/validate';
import type { Output } from '@app/runtime/tool-output';
import { connectTestDatabase } from '../../test/users';
import { hashOf } from '@app/api-keys/credentials';
import { ApiKeysRepository, type ListedKey } from '@app/api-keys/api-keys.repository';
import { readCommandLine } from './key-commands';
import { AuthenticateHandler } from '../queries/authenticate.handler';

let dataSource: DataSource;
let close: (() => Promise<void>) | undefined;
let authenticate: AuthenticateHandler;

beforeAll(async () => {
  ({ dataSource, close } = await connectTestDatabase());
  authenticate = new AuthenticateHandler(new ApiKeysRepository(dataSource));
});

afterAll(() => close?.());

afterEach(() => dataSource.query('TRUNCATE api_keys, outbox CASCADE'));

async function keys(line: string): Promise<Output> {
  const run = readCommandLine(line.split(' '));
  if (!run) throw new Error('that only helps');
  return run(new ApiKeysRepository(dataSource));
}

interface Issued {
  key: string;
  token: string;
  tokenId: string;
}
const issued = async (line: string) => (await keys(line)).data as unknown as Issued;

const verdict = async (apiKey: string, token: string) =>
  (await authenticate.authenticate({ apiKey, tokenHash: hashOf(token).toString('hex') })).verdict;

/** Takes the revocation events written since the last call. */
async function published(): Promise<unknown[]> {
  const events = await dataSource.query<{ type: string; api_key: string; data: unknown }[]>(
    'WITH taken AS (DELETE FROM outbox RETURNING *) SELECT type, api_key, data FROM taken ORDER BY seq',
  );
  return events.map(({ type, api_key, data }) => {
    expect(type).toBe(ApiKeyRevoked.type);
    expect(data).toHaveProperty('apiKey', api_key);
    expect(validateBody(ApiKeyRevokedData, data)).toEqual(data);
    return data;
  });
}

/** Moves the expiry of every token back by `time`. */
const laterBy = (time: string) => dataSource.query(`UPDATE tokens SET expires_at = expires_at - $1::interval`, [time]);

describe('keys', () => {
  it('creates a key and shows its token once', async () => {
    const { lines, data } = await keys('create --name Billing');
    const { key, token, tokenId } = data as unknown as Issued;
    expect(key).toMatch(/^key_[0-9a-f]{24}$/);
    expect(token).toMatch(/^tok_[\w-]{43}$/);
    expect(lines).toEqual([`API key  ${key}`, `Token    ${token}`, 'The token is not stored and cannot be shown again.']);
    expect(await verdict(key, token)).toBe('accepted');

    const listed = await keys('list');
    expect(listed.lines.join('\n')).toContain(tokenId);
    expect(JSON.stringify(listed)).not.toContain(token.slice(4));
    const everything = await dataSource.query<unknown[]>('SELECT k::text, t::text FROM api_keys k, tokens t');
    expect(JSON.stringify(everything)).not.toContain(token.slice(4));
  });

  it('refuses a wrong token, the token of another key, an unknown key', async () => {
    const [one, two] = [await issued('create'), await issued('create')];
    expect(await verdict(one.key, 'wrong')).toBe('refused');
    expect(await verdict(one.key, two.token)).toBe('refused');
    expect(await verdict('unknown', one.token)).toBe('refused');
    expect(await verdict(one.key, one.token)).toBe('accepted');
  });

  it('issues one more token, which expires after the given time', async () => {
    const first = await issued('create');
    const second = await issued(`issue-token ${first.key} --expires-in 90d`);
    expect(await verdict(first.key, second.token)).toBe('accepted');
    await laterBy('89 days 23 hours');
    expect(await verdict(first.key, second.token)).toBe('accepted');
    await laterBy('2 hours');
    expect(await verdict(first.key, second.token)).toBe('refused');
    expect(await verdict(first.key, first.token)).toBe('accepted');
  });

  it('rotates: the new token at once, the old ones until the grace has passed', async () => {
    const old = await issued('create');
    const fresh = await issued(`rotate ${old.key} --grace 1h`);
    expect(await verdict(old.key, old.token)).toBe('accepted');
    expect(await verdict(old.key, fresh.token)).toBe('accepted');
    await laterBy('61 minutes');
    expect(await verdict(old.key, old.token)).toBe('refused');
    expect(await verdict(old.key, fresh.token)).toBe('accepted');
  });

  it('rotates without grace, and never makes a token live longer', async () => {
    const old = await issued('create --expires-in 1h');
    await keys(`rotate ${old.key} --grace 30d`);
    await laterBy('61 minutes');
    expect(await verdict(old.key, old.token)).toBe('refused');
    const second = await issued(`rotate ${old.key}`);
    await keys(`rotate ${old.key} --grace 0s`);
    expect(await verdict(old.key, second.token)).toBe('refused');
  });

  it('disables a key and enables it again; a wrong token does not reveal that', async () => {
    const { key, token } = await issued('create');
    await keys(`disable ${key}`);
    expect(await verdict(key, token)).toBe('disabled');
    expect(await verdict(key, 'wrong')).toBe('refused');
    await keys(`enable ${key}`);
    expect(await verdict(key, token)).toBe('accepted');
  });

  it('revokes one token', async () => {
    const first = await issued('create');
    const second = await issued(`issue-token ${first.key}`);
    await keys(`revoke --token ${first.tokenId}`);
    expect(await verdict(first.key, first.token)).toBe('refused');
    expect(await verdict(first.key, second.token)).toBe('accepted');
  });

  it('revokes all tokens of a key and none of another', async () => {
    const [one, other] = [await issued('create'), await issued('create')];
    const second = await issued(`issue-token ${one.key}`);
    const { data } = await keys(`revoke ${one.key}`);
    expect((data.revoked as string[]).toSorted()).toEqual([one.tokenId, second.tokenId].toSorted());
    expect(await verdict(one.key, one.token)).toBe('refused');
    expect(await verdict(one.key, second.token)).toBe('refused');
    expect(await verdict(other.key, other.token)).toBe('accepted');
    expect((await keys(`revoke ${one.key}`)).data.revoked).toEqual([]);
  });

  it('publishes each revocation once, with token ids and never with a token', async () => {
    const { key, token, tokenId } = await issued('create');
    const { tokenId: second } = await issued(`issue-token ${key}`);
    const endsAt = expect.any(Number) as number;
    expect(await published()).toEqual([]);

    await keys(`disable ${key}`);
    await keys(`disable ${key}`);
    const [disabled, ...again] = await published();
    expect(disabled).toEqual({ apiKey: key, reason: 'disabled', endsAt });
    expect(Math.abs((disabled as { endsAt: number }).endsAt - Date.now())).toBeLessThan(60_000);
    expect(again).toEqual([]);
    await keys(`enable ${key}`);
    expect(await published()).toEqual([]);

    await keys(`revoke --token ${second}`);
    await keys(`revoke --token ${second}`);
    expect(await published()).toEqual([{ apiKey: key, reason: 'revoked', tokenIds: [second], endsAt }]);

    const fresh = await issued(`rotate ${key} --grace 1h`);
    const [rotated] = await published();
    expect(rotated).toEqual({ apiKey: key, reason: 'rotated', tokenIds: [tokenId], endsAt });
    expect((rotated as { endsAt: number }).endsAt).toBeGreaterThan(Date.now() + 3_500_000);

    await keys(`revoke ${key}`);
    await keys(`revoke ${key}`);
    const revoked = await published();
    expect(revoked).toEqual([{ apiKey: key, reason: 'revoked', tokenIds: [fresh.tokenId, tokenId].toSorted(), endsAt }]);
    expect(JSON.stringify([disabled, rotated, revoked])).not.toContain(token.slice(4));
  });

  it('grants a broker account the right to publish for one key, and withdraws it', async () => {
    const [one, two] = [await issued('create'), await issued('create')];
    const may = (publisher: string, key: string) => new ApiKeysRepository(dataSource).isGranted(publisher, key);
    expect(await may('billing', one.key)).toBe(false);
    await keys(`grant ${one.key} --publisher billing`);
    await keys(`grant ${one.key} --publisher billing`);
    expect([await may('billing', one.key), await may('billing', two.key), await may('', one.key)]).toEqual([true, false, false]);
    await keys(`disable ${one.key}`);
    expect(await may('billing', one.key)).toBe(false);
    await keys(`enable ${one.key}`);
    await keys(`withdraw ${one.key} --publisher billing`);
    expect(await may('billing', one.key)).toBe(false);
    await expect(keys(`withdraw ${one.key} --publisher billing`)).rejects.toThrow(
      `"billing" has no grant for the API key "${one.key}".`,
    );
  });

  it('grants all publishers, also without user_id', async () => {
    const { key } = await issued('create');
    const { lines } = await keys(`grant ${key} --publisher *`);
    expect(lines).toEqual([`Every publisher that the broker accepts may publish for ${key}, within 5 s.`]);
    expect(await new ApiKeysRepository(dataSource).isGranted('', key)).toBe(true);
  });

  it('lists keys with their state, their live tokens and their publishers', async () => {
    const one = await issued('create --name one');
    await keys(`grant ${one.key} --publisher billing`);
    const two = await issued('create --expires-in 1d');
    expect((await keys(`revoke ${one.key}`)).lines).toEqual([
      `Revoked 1 token(s) of ${one.key}.`,
      `Broker accounts still publish for it: billing. npm run keys -- disable ${one.key} ends that, too.`,
    ]);
    expect((await keys(`revoke ${two.key}`)).lines).toEqual([`Revoked 1 token(s) of ${two.key}.`]);
    const { tokenId } = await issued(`issue-token ${two.key} --expires-in 1d`);
    await keys(`disable ${two.key}`);
    const { data, lines } = await keys('list');
    expect(data.keys as ListedKey[]).toEqual([
      { key: one.key, name: 'one', disabled: false, createdAt: expect.any(Date), tokens: [], publishers: ['billing'] },
      {
        key: two.key,
        name: '',
        disabled: true,
        createdAt: expect.any(Date),
        tokens: [{ id: tokenId, createdAt: expect.any(Date), expiresAt: expect.any(Date) }],
        publishers: [],
      },
    ]);
    expect(lines[1]).toBe('  no live token');
    expect(lines[2]).toBe('  publisher billing');
    expect(lines[3]).toContain('disabled');
    const some = await keys('list --limit 1');
    expect([some.data, some.lines.at(-1)]).toEqual([
      { keys: [expect.objectContaining({ key: one.key })], more: true },
      'These are the first 1: give a TEXT, or a greater --limit.',
    ]);
    expect((await keys('list ONE --limit 1')).data).toMatchObject({ keys: [{ key: one.key }], more: false });
  });

  it('says that there are no API keys', async () => {
    expect((await keys('list')).lines).toEqual(['There are no such API keys.']);
  });

  it.each(['issue-token', 'rotate', 'disable', 'enable', 'revoke', 'grant --publisher x'])(
    '%s refuses an unknown key',
    async (command) => {
      await expect(keys(`${command} key_none`)).rejects.toThrow('There is no API key "key_none".');
      expect((await keys('list')).data).toEqual({ keys: [], more: false });
    },
  );

  it('lists some keys, for a page', async () => {
    const [first, second] = [await issued('create --name Billing'), await issued('create --name Backup')];
    await keys('create --name Other');
    const some = async (...parameters: Parameters<ApiKeysRepository['list']>) =>
      (await new ApiKeysRepository(dataSource).list(...parameters)).map(({ key }) => key);
    expect(await some('b')).toEqual(expect.arrayContaining([first.key, second.key]));
    expect(await some('BACK')).toEqual([second.key]);
    expect(await some(second.key)).toEqual([second.key]);
    expect(await some('', 1)).toEqual([first.key]);
    await dataSource.query('UPDATE api_keys SET name = $1 WHERE key = $2', [second.key, first.key]);
    expect(await some(second.key, 1)).toEqual([second.key]);
    expect(await some('%')).toEqual([]);
  });

  it('refuses to revoke an unknown token', async () => {
    await expect(keys('revoke --token none')).rejects.toThrow('There is no token with the id "none".');
  });
});
