import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Registry } from 'prom-client';
import { Authenticate } from '@app/contracts/users.authenticate';
import { createTestBroker, type TestBroker } from '@app/testing/broker';
import { eventually } from '@app/testing/eventually';
import { startUsersStub } from '@app/testing/users-stub';
import { declareTopology } from './declare-topology';
import { RabbitClient } from './rabbit.client';

/** The accounts of the table in docs/messages.md. */
function documented(): Record<string, { configure: string; write: string; read: string }> {
  const text = readFileSync(join(__dirname, '../../../docs/messages.md'), 'utf8');
  const rows = [...text.matchAll(/^\| ([^|]+) \| `(\^.*?\$)` \| `(\^.*?\$)` \| `(\^.*?\$)` \|$/gm)];
  return Object.fromEntries(
    rows.map(([, account = '', ...patterns]) => {
      const [configure = '', write = '', read = ''] = patterns.map((pattern) => pattern.replaceAll('\\|', '|'));
      return [account, { configure, write, read }];
    }),
  );
}

describe('the documented permissions', () => {
  let broker: TestBroker;
  const accounts = documented();
  const made = new Set<string>();

  beforeAll(async () => {
    broker = await createTestBroker();
    await declareTopology(broker.url);
  });
  afterAll(async () => {
    for (const user of made) await broker.management.delete(`users/${user}`);
    await broker.drop();
  });

  const urlOf = async (account: string): Promise<string> => {
    const url = new URL(broker.url);
    const vhost = url.pathname.slice(1);
    url.username = `${account.replace(/\W+/g, '-')}-${vhost}`;
    url.password = 'secret';
    await broker.management.put(`users/${url.username}`, { password: 'secret', tags: '' });
    made.add(url.username);
    await broker.management.put(`permissions/${vhost}/${url.username}`, accounts[account]);
    return url.href;
  };

  it('are those of four accounts', () => {
    expect(Object.keys(accounts)).toEqual(['gateway', 'users', 'notifications', 'a service that publishes and does not wait']);
  });

  it.each(['gateway', 'notifications'])('let %s call, and users answer', async (caller) => {
    const metrics = new Registry();
    const server = await startUsersStub(
      { connection: { url: await urlOf('users'), name: 'users' }, prefetch: { commands: 10, queries: 10 }, metrics },
      { add: () => undefined, authenticate: () => ({ verdict: 'accepted' }), exists: () => undefined },
    );
    const client = new RabbitClient({ connection: { url: await urlOf(caller), name: caller }, metrics });
    await client.connect();
    await eventually(() => client.check() === undefined && server.check() === undefined);
    const body = { apiKey: 'key', tokenHash: 'a'.repeat(64) };
    const answer = await client.call(Authenticate, body, { requestId: 'r', timeoutMs: 5000 });
    expect(answer.parse()).toEqual({ verdict: 'accepted' });
    await client.close();
    await server.close();
  });
});
