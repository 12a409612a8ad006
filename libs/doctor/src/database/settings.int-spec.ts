import { Client } from 'pg';
import { createEmptyDatabase, type TestDatabase } from '@app/testing/database/server-databases';
import { Findings } from '../finding';
import { lookAtSettings } from './health';
import { lookAtCommits } from './roles';

describe('the look at settings', () => {
  let database: TestDatabase;
  let client: Client;

  beforeAll(async () => {
    database = await createEmptyDatabase();
    client = await connect(database.url);
  });
  afterAll(async () => {
    await client?.end();
    await database?.drop();
  });

  const connect = async (url: string) => {
    const connected = new Client({ connectionString: url });
    await connected.connect();
    return connected;
  };

  it('finds texts that are not in UTF-8', async () => {
    const url = new URL(database.url);
    url.pathname += '_latin';
    const name = url.pathname.slice(1);
    await client.query(`CREATE DATABASE ${name} TEMPLATE template0 ENCODING 'LATIN1' LOCALE_PROVIDER libc LOCALE 'C'`);
    const latin = await connect(url.href);
    const findings = new Findings('database');
    try {
      await lookAtSettings(findings, latin);
    } finally {
      await latin.end();
      await client.query(`DROP DATABASE ${name}`);
    }
    expect(findings.all).toContainEqual(
      expect.objectContaining({
        state: 'problem',
        found: expect.stringMatching('^the database has the encoding LATIN1') as string,
      }),
    );
  });

  it('finds a role whose commits a crash loses', async () => {
    const name = client.escapeIdentifier(client.database ?? '');
    await client.query(`ALTER ROLE CURRENT_USER IN DATABASE ${name} SET synchronous_commit = off`);
    const found = async (by: Client) => {
      const findings = new Findings('database');
      await lookAtCommits(findings, by, 'users');
      return findings.all;
    };
    expect(await found(client)).toEqual([]);
    const later = await connect(database.url);
    const [finding] = await found(later);
    await later.end();
    expect(finding).toMatchObject({ subject: 'role users', state: 'problem' });
  });
});
