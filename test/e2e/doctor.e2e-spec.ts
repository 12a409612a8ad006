import { execFile } from 'node:child_process';
import { connect } from 'amqplib';
import { Client } from 'pg';
import { DoctorConfig } from '@app/doctor/config';
import { examine } from '@app/doctor/doctor';
import type { Finding } from '@app/doctor/finding';
import { ACCOUNTS } from '@app/rabbitmq-admin/accounts/rights';
import { BINDINGS, EXCHANGES, QUEUES } from '@app/rabbitmq/topology/topology';
import { createTestBroker, type TestBroker } from '@app/testing/broker/broker';
import { eventually } from '@app/testing/eventually';
import { requiredEnv } from '@app/testing/required-env';
import { createEmptyDatabase, type TestDatabase } from '@app/testing/database/server-databases';

interface Ran {
  code: number;
  stdout: string;
  stderr: string;
}

/** Set-up with an account and a role for each service, as in production. Then parts of it are broken. */
describe('the doctor', () => {
  let broker: TestBroker;
  let database: TestDatabase;
  let admin: Client;
  let names: string[];
  let env: Record<string, string>;

  const run = (program: string, parameters: string[], more: Record<string, string> = {}): Promise<Ran> =>
    new Promise((resolve) =>
      execFile(
        process.execPath,
        [program, ...parameters],
        { env: { PATH: process.env.PATH, ...env, ...more } },
        (error, stdout, stderr) => resolve({ code: error ? Number(error.code) : 0, stdout, stderr }),
      ),
    );
  const doctor = (parameters: string[], more?: Record<string, string>) =>
    run('dist/libs/doctor/src/doctor.main.js', parameters, more);
  const findingsOfProgram = async (more?: Record<string, string>) => {
    const { stdout } = await doctor(['--json'], more);
    return (JSON.parse(stdout) as { findings: Finding[] }).findings;
  };
  /** Without the second that a start of the program takes. */
  const findings = (more?: Record<string, string>) => examine(new DoctorConfig({ ...env, ...more }));
  // The database of the tests keeps nothing, on purpose.
  const problemsAmong = (found: Finding[]) => found.filter(({ state, subject }) => state === 'problem' && subject !== 'settings');
  const problems = async (more?: Record<string, string>) => problemsAmong(await findings(more));
  const as = (url: string, user: string) => {
    const own = new URL(url);
    own.username = user;
    own.password = 'secret';
    return own.href;
  };

  beforeAll(async () => {
    [broker, database] = await Promise.all([createTestBroker(), createEmptyDatabase()]);
    admin = new Client({ connectionString: database.url });
    await admin.connect();
    const vhost = new URL(broker.url).pathname.slice(1);
    names = ACCOUNTS.map((account) => `${account}-${vhost}`);
    env = {
      AMQP_URL: broker.url,
      DATABASE_URL: database.url,
      RABBITMQ_MANAGEMENT_URL: requiredEnv('TEST_RABBITMQ_MANAGEMENT_URL'),
      USERS_DATABASE_URL: as(database.url, names[1] ?? ''),
      NOTIFICATIONS_DATABASE_URL: as(database.url, names[2] ?? ''),
      TRUSTED_PUBLISHERS: names.slice(0, 3).join(),
      ...Object.fromEntries(
        ACCOUNTS.map((account, at) => [`${account.toUpperCase()}_AMQP_URL`, as(broker.url, names[at] ?? '')]),
      ),
    };
    const { code, stdout, stderr } = await run('scripts/setup.mjs', ['--json']);
    expect([code, stderr.match(/^\{"note":.*\}$/gm)?.join('\n')]).toEqual([0, stderr.trimEnd()]);
    expect(JSON.parse(stdout)).toEqual({
      steps: [
        { step: 'users', schema: 'users', migrations: expect.arrayContaining([expect.stringMatching(/\d{13}$/)]) as string[] },
        { step: 'notifications', schema: 'notifications', migrations: expect.any(Array) as string[] },
        { step: 'accounts', accounts: names, limited: expect.any(Number) as number },
        {
          step: 'topology',
          exchanges: EXCHANGES.length,
          queues: QUEUES.length,
          bindings: BINDINGS.length,
          away: [],
          notEmpty: [],
        },
      ],
    });
  });
  afterAll(async () => {
    await admin?.end();
    await database?.drop();
    for (const name of names) await broker.management.delete(`users/${name}`);
    await onServer((client) => Promise.all(names.slice(1, 3).map((role) => client.query(`DROP ROLE IF EXISTS "${role}"`))));
    await broker?.drop();
  });

  /** As PostgreSQL writes a name. */
  const quoted = (name = '') => (/^[a-z_]+$/.test(name) ? name : `"${name}"`);
  const onServer = async (work: (client: Client) => Promise<unknown>) => {
    const client = new Client({ connectionString: requiredEnv('TEST_DATABASE_URL') });
    await client.connect();
    await work(client).finally(() => client.end());
  };

  it('finds a system right that set-up has made, account by account', async () => {
    const found = await findingsOfProgram();
    expect(found.filter(({ state }) => state === 'problem').map(({ subject }) => subject)).toEqual(['settings', 'settings']);
    expect(found.filter(({ state }) => state === 'skipped')).toEqual([]);
    const fine = found.filter(({ state }) => state === 'ok').map(({ subject }) => subject);
    for (const account of ACCOUNTS) expect(fine).toEqual(expect.arrayContaining([`account ${account}`, `rights of ${account}`]));
    expect(fine).toEqual(
      expect.arrayContaining([
        ...[
          'queues',
          'connections',
          'message size',
          'role users',
          'role notifications',
          'schema users',
          'outbox of users',
          'copy',
        ],
        ...['erasures of users', 'erasures of notifications'],
        ...['clock, as users sees it', 'clock, as notifications sees it'],
        ...[broker.url, env.RABBITMQ_MANAGEMENT_URL, database.url].map((url) => `server ${new URL(url).host}`),
      ]),
    );
  });

  it('says which account cannot connect, why, and what to do, without a password', async () => {
    const found = await problems({
      USERS_AMQP_URL: as(broker.url, 'nobody'),
      PUBLISHER_AMQP_URL: `${broker.url}-misspelt`,
      NOTIFICATIONS_DATABASE_URL: 'postgres://somebody:secret@no-such-host.invalid:5432/none',
      USERS_DATABASE_URL: 'postgres://somebody:secret@127.0.0.1:1/none',
    });
    expect(found.map(({ subject, action }) => [subject, action])).toEqual([
      ['account users', expect.stringContaining('user, password and virtual host')],
      ['account publisher', expect.stringContaining('user, password and virtual host')],
      ['rights of users', expect.stringContaining('npm run setup')],
      ['rights of publisher', expect.stringContaining('npm run setup')],
      ['server no-such-host.invalid:5432', expect.stringContaining('start the server')],
      ['role users', expect.stringContaining('start the database')],
      ['role notifications', expect.stringContaining('start the server')],
    ]);
    expect(JSON.stringify(found)).not.toContain('secret');
  });

  it.each([
    ['of three accounts', {}],
    ['of an account beside that of AMQP_URL', { USERS_AMQP_URL: '', NOTIFICATIONS_AMQP_URL: '' }],
  ])('says whose calls the services would refuse: %s', async (_, more) => {
    const found = await problems({ TRUSTED_PUBLISHERS: names.slice(1, 3).join(), ...more });
    expect(found).toMatchObject([
      { subject: 'account gateway', found: expect.stringContaining('TRUSTED_PUBLISHERS lacks its name') as string },
    ]);
  });

  it('tells a server without room for connections from one that is down', async () => {
    const role = quoted(names[1]);
    await admin.query(`ALTER ROLE ${role} CONNECTION LIMIT 0`);
    const found = await problems();
    await admin.query(`ALTER ROLE ${role} CONNECTION LIMIT -1`);
    expect(found.map(({ subject, found: text, action }) => [subject, text, action])).toEqual([
      ['role users', 'cannot connect (53300)', expect.stringContaining('max_connections')],
    ]);
  });

  it('looks at everything else beside a table that somebody has locked', async () => {
    const holder = new Client({ connectionString: database.url });
    await holder.connect();
    await holder.query('BEGIN; LOCK TABLE users.outbox');
    const found = await findings();
    await holder.end();
    const states = Object.fromEntries(found.map(({ subject, state }) => [subject, state]));
    expect(states).toMatchObject({
      'outbox of notifications': 'ok',
      'erasures of users': 'ok',
      'erasures of notifications': 'ok',
    });
    const held = found.filter(({ found: text }) => text === 'could not be looked at (55P03)');
    expect(held.map(({ subject, action }) => [subject, action])).toEqual(
      ['outbox of users', 'copy'].map((subject) => [subject, expect.stringContaining('PoolExhausted') as string]),
    );
  });

  it('sees rights that are too wide, a missing queue, another argument, letters, and a queue that nobody consumes', async () => {
    const connection = await connect(broker.url);
    const channel = await connection.createConfirmChannel();
    await channel.deleteQueue('users.retry.5s');
    await channel.deleteQueue('users.retry.1s');
    await channel.assertQueue('users.retry.1s', { arguments: { 'x-queue-type': 'quorum' } });
    for (const queue of ['users.commands.dead', 'users.commands.0']) channel.sendToQueue(queue, Buffer.from('{}'));
    await channel.waitForConfirms();
    const vhost = new URL(broker.url).pathname.slice(1);
    await broker.management.put(`permissions/${vhost}/${names[3]}`, { configure: '.*', write: '.*', read: '^$' });
    await broker.management.put(`topic-permissions/${vhost}/${names[0]}`, { exchange: 'calls', write: '.*', read: '^$' });
    await broker.management.delete(`topic-permissions/${vhost}/${names[1]}/events`);
    // The numbers of the management API are seconds old.
    for (const queue of ['users.commands.dead', 'users.commands.0'])
      await eventually(async () => (await broker.management.get<{ messages?: number }>(`queues/${vhost}/${queue}`)).messages);
    const found = await findings();
    await connection.close();
    const bad = found.filter(({ state, area, subject }) => area === 'broker' && state !== 'ok' && subject !== 'replicas');
    expect(Object.fromEntries(bad.map(({ subject, found: text }) => [subject, text]))).toEqual({
      'account publisher': 'declares a queue and publishes to the default exchange, which it must not',
      'queue users.retry.5s': 'does not exist',
      'queue users.retry.1s': expect.stringContaining('x-message-ttl'),
      'exchange retry': 'lacks 1 binding: users.retry.1s does not reach users.retry.1s, for one',
      'queue users.commands.0': 'has 1 message and no consumer',
      'queue users.commands.dead': 'has 1 letter',
      'rights of publisher': 'configure, write differ from those that set-up gives',
      'rights of gateway': 'routing keys of calls differ from those that set-up gives',
      'rights of users': 'routing keys of events differ from those that set-up gives',
    });
  });

  it('sees that an account and the virtual host are near their limits of connections', async () => {
    const vhost = new URL(broker.url).pathname.slice(1);
    const open = await Promise.all(Array.from({ length: 9 }, () => connect(env.PUBLISHER_AMQP_URL)));
    await broker.management.put(`user-limits/${names[3]}/max-connections`, { value: 10 });
    await broker.management.put(`vhost-limits/${vhost}/max-connections`, { value: 10 });
    const near = async () =>
      (await findings())
        .filter(({ state, subject }) => state === 'warning' && subject.startsWith('connections'))
        .map(({ subject, found }) => `${subject}: ${found}`);
    // The management API knows new connections seconds later, and not all at once.
    await eventually(async () => {
      expect(await near()).toEqual([
        `connections of ${names[3]}: 9 of 10 are in use`,
        'connections of the virtual host: 9 of 10 are in use',
      ]);
      return true;
    });
    await Promise.all(open.map((connection) => connection.close()));
    await broker.management.delete(`vhost-limits/${vhost}/max-connections`);
  });

  it("sees a clock that differs from the database's", async () => {
    // The clock of this machine as the doctor reads it, a minute late.
    const late = `data:text/javascript,const now = Date.now; Date.now = () => now() - 60_000`;
    const found = problemsAmong(await findingsOfProgram({ NODE_OPTIONS: `--import "${late}"` }));
    const clocks = found.filter(({ subject }) => subject.startsWith('clock'));
    expect(clocks.map(({ found: text }) => text)).toEqual(Array(2).fill(expect.stringMatching(/ by (59|60)\d{3} ms$/)));
  });

  it('sees an erasure that a service has not completed after half an hour', async () => {
    const late = async () =>
      (await findings())
        .filter(({ state, subject }) => state === 'warning' && subject.startsWith('erasures'))
        .map(({ subject, found, action }) => [subject, found.replace(/\d+ s/, '… s'), action]);
    await admin.query(`
      INSERT INTO users.erasures (api_key, user_ids, version, requested_at)
      VALUES ('k', '{u}', 1, clock_timestamp() - interval '29 minutes');
      INSERT INTO notifications.erasures (id, api_key, user_ids, version, up_to, received_at) VALUES
        ('running', 'k', '{u}', 1, 0, clock_timestamp() - interval '29 minutes'),
        ('complete', 'k', NULL, 1, 0, clock_timestamp() - interval '1 day')`);
    expect(await late()).toEqual([]);
    const action = expect.stringContaining('DeletionStuck') as string;
    await admin.query(`UPDATE users.erasures SET requested_at = requested_at - interval '2 minutes'`);
    expect(await late()).toEqual([['erasures of users', '1 is not complete, the oldest … s old', action]]);
    await admin.query(`
      DELETE FROM users.erasures;
      UPDATE notifications.erasures SET received_at = received_at - interval '2 minutes' WHERE id = 'running'`);
    expect(await late()).toEqual([['erasures of notifications', '1 is not complete, the oldest … s old', action]]);
    await admin.query(`DELETE FROM notifications.erasures`);
  });

  it('sees a missing migration, rights of roles that are wrong, and an incomplete copy', async () => {
    await admin.query(`
      INSERT INTO users.api_keys (key, name) VALUES ('k', 'k');
      INSERT INTO users.organizations (api_key, organization_id) VALUES ('k', 'o');
      INSERT INTO notifications.organizations (api_key, organization_id) VALUES ('k', 'o');
      INSERT INTO users.users (organization, user_id, initial_generated) SELECT id, 'u', false FROM users.organizations;
      INSERT INTO users.organization_members (organization, user_id) SELECT id, 'u' FROM users.organizations;
      INSERT INTO notifications.complete_members (organization, user_id) SELECT id, 'u' FROM notifications.organizations`);
    const ofCopy = async () => (await findings()).filter(({ subject }) => subject === 'copy').map(({ found }) => found);
    expect(await ofCopy()).toEqual(['lacks memberships of 1 of 1 user']);
    const connection = await connect(broker.url);
    const channel = await connection.createConfirmChannel();
    channel.sendToQueue('notifications.events', Buffer.from('{}'));
    await channel.waitForConfirms();
    expect(await ofCopy()).toEqual(['lacks memberships of 1 of 1 user, and 1 event waits in notifications.events']);
    await channel.purgeQueue('notifications.events');
    await connection.close();
    await admin.query(`INSERT INTO notifications.members (organization, user_id, level, id, added)
      SELECT id, 'u', 'organization', '', 0 FROM notifications.organizations`);
    expect(await ofCopy()).toEqual(['has the memberships of 1 user in their organizations']);
    await admin.query(`UPDATE users.organization_members SET removed = added + 1`);
    expect(await ofCopy()).toEqual(['has memberships that have ended of 1 of 1 user']);
    await admin.query(`UPDATE notifications.members SET removed = 1`);
    expect(await ofCopy()).toEqual(['has the memberships of 1 user in their organizations']);
    await admin.query(`UPDATE users.organization_members SET added = removed + 1`);
    expect(await ofCopy()).toEqual(['lacks memberships of 1 of 1 user']);
    await admin.query(`
      DELETE FROM users.migrations WHERE id = (SELECT max(id) FROM users.migrations);
      GRANT USAGE ON SCHEMA users TO "${names[2]}"; GRANT SELECT ON users.migrations TO "${names[2]}";
      REVOKE INSERT, UPDATE ON users.tokens FROM "${names[1]}"; REVOKE DELETE ON notifications.outbox FROM "${names[2]}";
      REVOKE USAGE ON SEQUENCE users.organizations_id_seq FROM "${names[1]}";
      GRANT DELETE ON notifications.documents TO "${names[2]}"`);
    const found = (await problems()).filter(({ area }) => area === 'database');
    expect(found.map(({ subject, found: text }) => `${subject}: ${text}`)).toEqual([
      'schema users: 1 migration has not run',
      `role users: has other rights than set-up gives: GRANT INSERT, UPDATE ON users.tokens TO ${quoted(names[1])}; GRANT USAGE ON SEQUENCE users.organizations_id_seq TO ${quoted(names[1])}`,
      `role notifications: has other rights than set-up gives: GRANT DELETE ON notifications.outbox TO ${quoted(names[2])}; REVOKE DELETE ON notifications.documents FROM ${quoted(names[2])}`,
      'role notifications: may read schema users',
      'copy: lacks memberships of 1 of 1 user',
    ]);
  });

  it('names a table that is missing, although its migration has run', async () => {
    await admin.query('ALTER TABLE notifications.read_marks RENAME TO gone');
    const found = (await problems()).filter(({ subject }) => subject.startsWith('table'));
    await admin.query('ALTER TABLE notifications.gone RENAME TO read_marks');
    expect(found).toMatchObject([
      {
        subject: 'table notifications.read_marks',
        found: expect.stringContaining('is missing') as string,
        action: expect.stringContaining('restore') as string,
      },
    ]);
  });

  it('has exit codes, help with examples, and takes a wrong configuration for a finding', async () => {
    const nothing = Object.fromEntries(Object.keys(env).map((name) => [name, '']));
    const [wrong, help, broken, blind] = await Promise.all([
      doctor(['--jsn']),
      doctor(['--help']),
      doctor([], { AMQP_URL: 'http://secret@host' }),
      doctor([], nothing),
    ]);
    expect([wrong.code, wrong.stdout]).toEqual([2, '']);
    expect(wrong.stderr).toContain('--jsn');
    expect([help.code, help.stdout]).toEqual([0, expect.stringContaining('Examples:')]);
    expect([broken.code, broken.stdout]).toEqual([1, expect.stringMatching(/^PROBLEM {2}configuration: variables: AMQP_URL /)]);
    expect(broken.stdout).not.toContain('secret');
    expect([blind.code, blind.stdout]).toEqual([1, expect.stringContaining('no URL is set')]);
  });
});
