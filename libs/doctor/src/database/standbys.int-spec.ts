import { Client } from 'pg';
import { eventually } from '@app/testing/eventually';
import { PrivateServer } from '@app/testing/system/private-server';
import { Findings } from '../finding';
import { lookAtSessions } from './health';
import { lookAtStandbys } from './log';

describe('the look at standbys and sessions', () => {
  const clients: Client[] = [];
  let primary: PrivateServer;
  let standby: PrivateServer | undefined;
  let admin: Client;
  let owner: Client;

  const connect = async (user: string) => {
    const url = new URL(primary.url);
    url.username = user;
    const client = new Client({ connectionString: url.href });
    clients.push(client);
    await client.connect();
    return client;
  };
  const found = async (client = admin, look = lookAtStandbys) => {
    const findings = new Findings('database');
    await look(findings, client);
    return findings.all.map(({ state, found: text }) => `${state} ${text}`).join();
  };
  const finds = (text: string) => eventually(async () => (await found()) === text, 20_000);
  const set = async (setting: string) => {
    await admin.query(`ALTER SYSTEM SET ${setting}`);
    await admin.query('SELECT pg_reload_conf()');
  };

  beforeAll(async () => {
    primary = await PrivateServer.start('postgres');
    admin = await connect('postgres');
    await admin.query('CREATE ROLE owner LOGIN');
    owner = await connect('owner');
  }, 30_000);
  afterAll(async () => {
    for (const client of clients) await client.end();
    await standby?.remove();
    await primary?.remove();
  });

  it('warns of a standby that does not have each answer, and finds a problem when the synchronous one is away', async () => {
    expect(await found()).toBe('ok none follows this server');
    standby = await PrivateServer.start('postgres', '--standby-of', primary.url);
    await finds('warning 1 follows, and none is synchronous: a failover loses the last answers 200');
    await set(`synchronous_standby_names = 'standby'`);
    await finds('ok 1 is synchronous');
    await admin.query('SET synchronous_commit = local');
    expect(await found()).toBe('problem synchronous_commit is local: a failover loses the last answers 200');
    await admin.query('RESET synchronous_commit');
    await standby.remove();
    await finds('problem no synchronous standby is connected, so commits wait');
  }, 60_000);

  it('says that an account does not see them, and nothing of them', async () => {
    await set(`synchronous_standby_names = ''`);
    const blind = 'skipped the account in DATABASE_URL does not see them: GRANT pg_monitor TO it';
    expect([await found(owner), await found(owner, lookAtSessions)]).toEqual([blind, blind]);
    await admin.query('GRANT pg_monitor TO owner');
    expect(await found(owner)).toBe('ok none follows this server');
    expect(await found(owner, lookAtSessions)).toMatch(/^ok 2 of \d+ connections are in use$/);
  });
});
