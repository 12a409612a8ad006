import { randomBytes } from 'node:crypto';
import { connect } from 'amqplib';
import { Client } from 'pg';
import type { Finding } from '@app/doctor/finding';
import { eventually } from '@app/testing/eventually';
import { PrivateServer } from '@app/testing/system/private-server';
import { ServiceProcess, type AppName } from '@app/testing/system/service-process';
import { as, Fleet, run, setUp, underCalls, type Env } from './fleet';

const TOOL = 'scripts/tool.mjs';

async function opensBroker(url: string): Promise<boolean> {
  try {
    await (await connect(url)).close();
    return true;
  } catch {
    return false;
  }
}

async function opensDatabase(url: string): Promise<boolean> {
  const client = new Client({ connectionString: url });
  try {
    await client.connect();
    return true;
  } catch {
    return false;
  } finally {
    await client.end().catch(() => undefined);
  }
}

/** "Rotate secrets" of docs/operations.md, step by step, while clients call. The tests of TLS replace certificates. */
describe('every secret is replaced, and no call fails', () => {
  let broker: PrivateServer;
  let database: PrivateServer;
  let env: Env;
  let fleet: Fleet;

  beforeAll(async () => {
    [broker, database] = await Promise.all([
      PrivateServer.start('rabbitmq', '--management'),
      PrivateServer.start('postgres', '--password'),
    ]);
    env = {
      AMQP_URL: broker.url,
      DATABASE_URL: database.url,
      RABBITMQ_MANAGEMENT_URL: new URL(broker.managementUrl).origin,
      GATEWAY_AMQP_URL: as(broker.url, 'gateway'),
      USERS_AMQP_URL: as(broker.url, 'users'),
      NOTIFICATIONS_AMQP_URL: as(broker.url, 'notifications'),
      USERS_DATABASE_URL: as(database.url, 'users'),
      NOTIFICATIONS_DATABASE_URL: as(database.url, 'notifications'),
    };
    await setUp(env);
    fleet = await Fleet.start(env);
  });
  afterAll(async () => {
    await fleet?.stop();
    await Promise.all([broker?.remove(), database?.remove()]);
  });

  /** @returns the statuses other than 200 */
  const failuresDuring = async (work: () => Promise<unknown>) => {
    const { 200: answered = 0, ...others } = await underCalls(() => fleet, work);
    expect(answered).toBeGreaterThan(10);
    return others;
  };

  it.each<[string, AppName, (url: string) => Promise<boolean>]>([
    ['GATEWAY_AMQP_URL', 'gateway', opensBroker],
    ['USERS_AMQP_URL', 'users', opensBroker],
    ['NOTIFICATIONS_AMQP_URL', 'notifications', opensBroker],
    ['USERS_DATABASE_URL', 'users', opensDatabase],
    ['NOTIFICATIONS_DATABASE_URL', 'notifications', opensDatabase],
  ])('the password in %s', async (variable, app, opens) => {
    const earlier = env[variable];
    expect(await opens(earlier)).toBe(true);
    const failures = await failuresDuring(async () => {
      env[variable] = as(earlier);
      await setUp(env);
      await fleet.restart(app);
    });
    expect(failures).toEqual({});
    expect([await opens(earlier), await opens(env[variable])]).toEqual([false, true]);
  });

  it('the passwords of the accounts with all rights', async () => {
    const earlier = { broker: env.AMQP_URL, database: env.DATABASE_URL };
    const failures = await failuresDuring(async () => {
      env.AMQP_URL = as(earlier.broker);
      env.DATABASE_URL = as(earlier.database);
      const [ofBroker, ofDatabase] = [new URL(env.AMQP_URL), new URL(env.DATABASE_URL)];
      await broker.order(`rabbitmqctl change_password ${ofBroker.username} ${ofBroker.password}`);
      const sql = new Client({ connectionString: earlier.database });
      await sql.connect();
      await sql.query(`ALTER ROLE ${ofDatabase.username} PASSWORD '${ofDatabase.password}'`);
      await sql.end();
      await setUp(env);
    });
    expect(failures).toEqual({});
    expect([await opensBroker(earlier.broker), await opensBroker(env.AMQP_URL)]).toEqual([false, true]);
    expect([await opensDatabase(earlier.database), await opensDatabase(env.DATABASE_URL)]).toEqual([false, true]);
  });

  it('the token of an API key', async () => {
    const keys = async (...words: string[]) =>
      JSON.parse(await run(TOOL, ['keys', ...words, '--json'], env)) as { key: string; token: string };
    const headers = (key: string, token: string) => ({ 'x-svc-api-key': key, 'x-svc-auth-token': token });
    const { key, token } = await keys('create');
    const next = await keys('rotate', key, '--grace', '1h');
    const both = [token, next.token].map((one) => headers(key, one));
    expect(await Promise.all(both.map((one, index) => fleet.call(index, `key ${index}`, one)))).toEqual([200, 200]);
    await keys('rotate', key, '--grace', '0s');
    await eventually(async () => {
      const statuses = await Promise.all(both.map((one, index) => fleet.call(index, `ended ${index}`, one)));
      return statuses.every((status) => status === 401);
    });
  });

  it('the password of another service, whose open connection lives on', async () => {
    const accounts = async (...words: string[]) =>
      JSON.parse(await run(TOOL, ['accounts', ...words, '--json'], env)) as { url: string; exchange: string };
    const { url, exchange } = await accounts('create', 'billing', '--operations', 'notifications.add.v1');
    const connection = await connect(url);
    const channel = await connection.createConfirmChannel();
    const rotated = await accounts('rotate', 'billing');
    expect([await opensBroker(url), await opensBroker(rotated.url)]).toEqual([false, true]);
    channel.publish(exchange, 'notifications.add.v1', Buffer.from('{}'), { userId: 'billing' });
    await channel.waitForConfirms();
    await connection.close();
  });

  it("the token of the operator's page", async () => {
    const [first, second] = [1, 2].map(() => randomBytes(32).toString('hex'));
    const page = async (token: string) => {
      const operator = new ServiceProcess('operator', {
        ...env,
        OPERATOR_TOKEN: token,
        OPERATOR_PORT: '0',
        OPERATOR_PROCESSES: `localhost:${fleet.of('gateway')[0].healthPort}`,
      });
      await operator.start();
      const ask = async (given: string) =>
        (await fetch(operator.url, { headers: { authorization: `Bearer ${given}` }, redirect: 'manual' })).status;
      const statuses = [await ask(first), await ask(second)];
      await operator.stop();
      return statuses;
    };
    expect(await page(first)).toEqual([200, 401]);
    expect(await page(second)).toEqual([401, 200]);
  });

  it('and the doctor can use all of them', async () => {
    // It fails because of the settings of the database.
    const stdout = await run(TOOL, ['doctor', '--json'], env).catch((error: unknown) => (error as { stdout: string }).stdout);
    const { findings } = JSON.parse(stdout) as { findings: Finding[] };
    // The database of the tests keeps nothing, on purpose.
    expect(findings.filter(({ state, subject }) => state === 'problem' && subject !== 'settings')).toEqual([]);
  });
});
