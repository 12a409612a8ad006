import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Client } from 'pg';
import type { MigrationInterface, QueryRunner } from 'typeorm';
import { eventually } from '@app/testing/eventually';
import { PrivateServer } from '@app/testing/system/private-server';
import { migrate } from './migrate';
import { MissingRights, serviceRoleOf } from './required-rights';

class Things1795132800001 implements MigrationInterface {
  readonly name = 'Things1795132800001';
  up = (runner: QueryRunner) => runner.query('CREATE TABLE things (id bigint GENERATED ALWAYS AS IDENTITY, name text)');
  down = (runner: QueryRunner) => runner.query('DROP TABLE things');
}

/** Notes every command that creates, alters, grants or revokes something in its database. */
const NOTE_COMMANDS = `
  CREATE TABLE commands (tag text);
  CREATE FUNCTION note() RETURNS event_trigger LANGUAGE plpgsql SECURITY DEFINER AS 'BEGIN INSERT INTO public.commands VALUES (tg_tag); END';
  CREATE EVENT TRIGGER note ON ddl_command_end EXECUTE FUNCTION note()`;

describe('set-up with an owner without CREATEROLE', () => {
  let server: PrivateServer;
  let admin: Client;
  let database: Client;

  beforeAll(async () => {
    server = await PrivateServer.start('postgres');
    admin = await connected(server.url);
    await admin.query(`ALTER ROLE postgres PASSWORD 'postgres'; CREATE ROLE owner LOGIN PASSWORD 'owner'`);
    const hba = (await admin.query<{ hba_file: string }>('SHOW hba_file')).rows[0]?.hba_file ?? '';
    await admin.query(`COPY (SELECT 'host all all 127.0.0.1/32 scram-sha-256') TO ${admin.escapeLiteral(hba)}`);
    await admin.query('SELECT pg_reload_conf()');
    await eventually(() =>
      connected(url('owner', 'wrong', 'postgres')).then(
        () => false,
        (error: unknown) => (error as { code?: string }).code === '28P01',
      ),
    );
  });
  afterAll(async () => {
    await admin?.end();
    await server?.remove();
  });
  beforeEach(async () => {
    await admin.query('CREATE DATABASE managed OWNER owner');
    await admin.query(`CREATE ROLE service LOGIN PASSWORD 'it''s "quoted"'`);
    database = await connected(url('postgres', 'postgres'));
    await database.query(NOTE_COMMANDS);
  });
  afterEach(async () => {
    await database.end();
    await admin.query('DROP DATABASE managed WITH (FORCE)');
    await admin.query('DROP ROLE IF EXISTS service');
  });

  const url = (user: string, password: string, name = 'managed'): string =>
    Object.assign(new URL(server.url), { username: user, password, pathname: `/${name}` }).href;
  const setUp = (owner = 'owner', password = `it's "quoted"`, undeletable: string[] = []) => {
    const serviceUrl = url('service', encodeURIComponent(password));
    return migrate({ adminUrl: url(owner, owner), serviceUrl, schema: 'own', migrations: [Things1795132800001], undeletable });
  };
  const refusal = async (work: Promise<unknown>): Promise<string> => {
    const error: unknown = await work.catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(MissingRights);
    return (error as Error).message;
  };
  /** Commands since the last call, and the version of the role. */
  const changes = async () => {
    const { rows } = await database.query<{ tag: string }>(
      'WITH taken AS (DELETE FROM commands RETURNING tag) SELECT tag FROM taken',
    );
    const role = await database.query<{ xmin: string }>(`SELECT xmin FROM pg_authid WHERE rolname = 'service'`);
    return { commands: rows.map(({ tag }) => tag), role: role.rows[0]?.xmin };
  };

  it('works when the role is there, and changes nothing the second time', async () => {
    const { role } = await changes();
    await expect(setUp()).resolves.toEqual(['Things1795132800001']);
    const service = await connected(url('service', encodeURIComponent(`it's "quoted"`)));
    await service.query(`INSERT INTO own.things (name) VALUES ('x')`);
    await expect(service.query(`DELETE FROM own.migrations`)).rejects.toThrow('permission denied');
    await service.end();
    await changes();
    await expect(setUp()).resolves.toEqual([]);
    expect(await changes()).toEqual({ commands: [], role });
  });

  it('repairs one privilege that is missing, and one too many', async () => {
    await setUp();
    await database.query('REVOKE DELETE ON own.things FROM service; GRANT INSERT ON own.migrations TO service');
    await changes();
    await setUp();
    expect((await changes()).commands).toEqual(['GRANT', 'REVOKE']);
    const { rows } = await database.query(
      `SELECT has_table_privilege('service', 'own.things', 'DELETE') AS things, has_table_privilege('service', 'own.migrations', 'INSERT') AS migrations`,
    );
    expect(rows).toEqual([{ things: true, migrations: false }]);
  });

  it('takes the right to delete rows that others rely on, and gives it back', async () => {
    const mayDelete = async () =>
      (await database.query(`SELECT has_table_privilege('service', 'own.things', 'DELETE') AS granted`)).rows;
    await setUp();
    expect(await mayDelete()).toEqual([{ granted: true }]);
    await setUp(undefined, undefined, ['things']);
    expect(await mayDelete()).toEqual([{ granted: false }]);
    await changes();
    await setUp(undefined, undefined, ['things']);
    expect((await changes()).commands).toEqual([]);
    await setUp();
    expect(await mayDelete()).toEqual([{ granted: true }]);
  });

  it('says what an administrator must run when the role is missing or has another password, and changes nothing', async () => {
    const { role } = await changes();
    const wrong = await refusal(setUp('owner', 'another one'));
    expect(wrong).toContain(`ALTER ROLE "service" PASSWORD '<the password in the URL of the service>';`);
    expect((await changes()).role).toBe(role);
    await admin.query('DROP ROLE service');
    const missing = await refusal(setUp());
    expect(missing).toContain(`CREATE ROLE "service" LOGIN PASSWORD '<the password in the URL of the service>';`);
    expect(`${wrong}${missing}`).not.toMatch(/another one|quoted/);
    expect((await changes()).commands).toEqual([]);
  });

  it('says what an administrator must run when the server refuses the verifier of a password', async () => {
    await admin.query(`DROP ROLE service; ALTER ROLE postgres SET session_preload_libraries = 'passwordcheck'`);
    // Of a verifier this extension knows only whether it is that of the name.
    const refused = await refusal(setUp('postgres', 'service'));
    await admin.query('ALTER ROLE postgres RESET session_preload_libraries');
    expect(refused).toContain('refuses the verifier of a password (22023)');
    expect(refused).toContain(`CREATE ROLE "service" LOGIN PASSWORD '<the password in the URL of the service>';`);
    await admin.query(`CREATE ROLE service LOGIN PASSWORD 'service'`);
    await expect(setUp('postgres', 'service')).resolves.toEqual(['Things1795132800001']);
  });

  it('lets no password into the log of the server, which has each statement that fails', async () => {
    await refusal(setUp('owner', 'in no log'));
    await setUp('postgres', 'in no log');
    const log = readFileSync(join(server.directory, 'postgres.log'), 'utf8');
    expect(log).toMatch(/STATEMENT: {2}ALTER ROLE "service"/);
    expect(log).not.toContain('in no log');
  });

  it('says how a % in the URL of the service has to be written', () => {
    const role = (password: string) =>
      serviceRoleOf(`postgres://service:${password}@localhost/managed`, url('owner', 'owner'), {});
    for (const password of ['50%', '50%e9']) expect(() => role(password)).toThrow('not written as %25');
    expect(role('50%25')).toMatchObject({ name: 'service', password: '50%' });
  });

  it.each(['postgres://service:pw@localhost/other', 'postgres://service:pw@localhost'])(
    'refuses a URL of the service to another database: %s',
    (serviceUrl) => {
      const adminUrl = url('owner', 'owner');
      expect(() => serviceRoleOf(serviceUrl, adminUrl, {})).toThrow('names another database than DATABASE_URL');
      expect(serviceRoleOf('postgres://managed:pw@localhost', adminUrl, {})).toMatchObject({ name: 'managed' });
    },
  );

  it('takes the database of PGDATABASE for a URL that names none, as the driver does', () => {
    process.env.PGDATABASE = 'managed';
    try {
      const roleOf = (serviceUrl: string) => serviceRoleOf(serviceUrl, url('owner', 'owner'), {});
      expect(roleOf('postgres://service:pw@localhost')).toMatchObject({ name: 'service' });
      expect(() => roleOf('postgres://service:pw@localhost/other')).toThrow('names another database');
    } finally {
      delete process.env.PGDATABASE;
    }
  });

  it('says what is missing when the account may create no schema', async () => {
    await admin.query(
      'REVOKE ALL ON DATABASE managed FROM owner; ALTER DATABASE managed OWNER TO postgres; GRANT CONNECT ON DATABASE managed TO owner',
    );
    expect(await refusal(setUp())).toMatch(/CREATE SCHEMA "own";$/);
  });

  it('creates the role and changes its password with an account that may', async () => {
    await admin.query('DROP ROLE service');
    await setUp('postgres');
    for (const password of ['another one', 'Åbo ½', 'soft\u00ADhyphen', '\u1680❤\uFE0F']) {
      await setUp('postgres', password);
      await (await connected(url('service', encodeURIComponent(password)))).end();
    }
  });
});

async function connected(connectionString: string): Promise<Client> {
  const client = new Client({ connectionString });
  await client.connect();
  return client;
}
