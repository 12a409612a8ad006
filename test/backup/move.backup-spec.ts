import { connect } from 'amqplib';
import { Client } from 'pg';
import { eventually } from '@app/testing/eventually';
import { report } from '@app/testing/report';
import { PrivateServer } from '@app/testing/system/private-server';
import { as, Fleet, run, setUp, underCalls, type Env } from './fleet';

const COMMANDS = 300;
/** Queues in which nothing waits for a service. */
const LETTERS = /\.(dead|crashed|refused)$/;

/** "Move to another broker" and "Move to another database" of docs/operations.md, step by step, while clients call. */
describe('the system moves, and nothing that was answered is lost', () => {
  const brokers: PrivateServer[] = [];
  const databases: PrivateServer[] = [];
  const added: string[] = [];
  let env: Env;
  let fleet: Fleet;
  let earlier: Fleet | undefined;

  beforeAll(async () => {
    brokers.push(...(await Promise.all([1, 2].map(() => PrivateServer.start('rabbitmq', '--management')))));
    databases.push(await PrivateServer.start('postgres', '--fsync'));
    env = {
      AMQP_URL: brokers[0].url,
      RABBITMQ_MANAGEMENT_URL: new URL(brokers[0].managementUrl).origin,
      DATABASE_URL: databases[0].url,
    };
    for (const account of ['gateway', 'users', 'notifications'])
      env[`${account.toUpperCase()}_AMQP_URL`] = as(brokers[0].url, account);
    await setUp(env);
    fleet = await Fleet.start(env);
  });
  afterAll(async () => {
    await Promise.all([fleet?.stop(), earlier?.stop()]);
    await Promise.all([...brokers, ...databases].map((server) => server.remove()));
  });

  const stored = async (url: string) => {
    const sql = new Client({ connectionString: url });
    await sql.connect();
    const { rows } = await sql.query<{ id: string }>('SELECT id FROM notifications.notifications');
    await sql.end();
    return rows.map(({ id }) => id);
  };
  const expectAllStored = async (url: string) => {
    const ids = await stored(url);
    expect(new Set(ids).size).toBe(ids.length);
    expect(added.filter((id) => !ids.includes(id))).toEqual([]);
  };

  /** Commands of another service that does not wait for their answers. */
  async function publish(url: string, exchange: string, name: string): Promise<void> {
    const connection = await connect(url);
    const channel = await connection.createConfirmChannel();
    for (let number = 0; number < COMMANDS; number++) {
      const notificationId = `${name} ${number}`;
      const body = {
        organizationId: 'org',
        documentId: 'document',
        notificationId,
        actionUser: { userId: 'actor' },
        displayHeadlineMessageTemplate: 'Hello',
        notifyAll: true,
      };
      channel.publish(exchange, 'notifications.add.v1', Buffer.from(JSON.stringify(body)), {
        persistent: true,
        userId: 'billing',
        headers: { 'x-api-key': 'demo-key' },
      });
      added.push(notificationId);
    }
    await channel.waitForConfirms();
    await connection.close();
  }

  it('to another broker', async () => {
    const account = JSON.parse(
      await run('scripts/tool.mjs', ['accounts', 'create', 'billing', '--operations', 'notifications.add.v1', '--json'], env),
    ) as { url: string; exchange: string };
    await run('scripts/tool.mjs', ['keys', 'grant', 'demo-key', '--publisher', 'billing'], env);
    const answers = await underCalls(
      () => fleet,
      async () => {
        // 1
        await brokers[1].management.post('definitions', await brokers[0].management.get('definitions'));
        const there = (url: string) => Object.assign(new URL(url), { host: new URL(brokers[1].url).host }).href;
        const moved: Env = {
          ...env,
          RABBITMQ_MANAGEMENT_URL: new URL(brokers[1].managementUrl).origin,
          ...Object.fromEntries(
            Object.entries(env).flatMap(([name, url]) => (name.endsWith('AMQP_URL') ? [[name, there(url)]] : [])),
          ),
        };
        await setUp(moved);
        // 2
        await publish(there(account.url), account.exchange, 'at the new broker');
        // 3
        earlier = fleet;
        fleet = await Fleet.start(moved);
        // 4, and the last commands of a process of the other service that was late
        await earlier.stop('gateway');
        await publish(account.url, account.exchange, 'at the earlier broker');
        await eventually(async () => {
          const texts = await Promise.all([...earlier!.of('users'), ...earlier!.of('notifications')].map((one) => one.metrics()));
          const lengths = texts.flatMap((text) => [...text.matchAll(/^queue_messages\{queue="([^"]+)"\} (\d+)$/gm)]);
          return lengths.length > 0 && lengths.every(([, queue, length]) => LETTERS.test(queue) || length === '0');
        });
        // 5
        await earlier.stop('users', 'notifications');
        await brokers[0].order('stop');
        env = moved;
      },
      added,
    );
    report({ moved: 'broker', answers });
    expect(Object.keys(answers)).toEqual(['200']);
    await eventually(async () => (await stored(env.DATABASE_URL)).length >= added.length);
    await expectAllStored(env.DATABASE_URL);
  });

  it('to another database', async () => {
    const { host } = new URL(databases[0].url);
    const sql = new Client({ connectionString: databases[0].url });
    sql.on('error', () => undefined);
    await sql.connect();
    const standby = await PrivateServer.start('postgres', '--fsync', '--standby-of', databases[0].url);
    databases.push(standby);
    const answers = await underCalls(
      () => fleet,
      async () => {
        // 1
        Object.assign(fleet.env, { DATABASE_URL: env.DATABASE_URL.replace(host, `${host},${new URL(standby.url).host}`) });
        await fleet.restartAll();
        // 2
        await sql.query(`ALTER SYSTEM SET synchronous_standby_names = '*'`);
        await sql.query('SELECT pg_reload_conf()');
        await eventually(async () => (await sql.query(`SELECT 1 FROM pg_stat_replication WHERE sync_state = 'sync'`)).rowCount);
        // 3
        await databases[0].order('stop');
        const promoting = new Client({ connectionString: standby.url });
        await promoting.connect();
        await promoting.query('SELECT pg_promote()');
        await promoting.end();
        // 4
        fleet.env.DATABASE_URL = standby.url;
        await fleet.restartAll();
      },
      added,
    );
    await sql.end().catch(() => undefined);
    report({ moved: 'database', answers });
    // A call that begins while nobody can write may have to be repeated.
    expect(Object.keys(answers).filter((status) => !['200', '503'].includes(status))).toEqual([]);
    expect(answers[200]).toBeGreaterThan(100);
    await expectAllStored(standby.url);
  });
});
