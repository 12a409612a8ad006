import { connect, type ChannelModel, type ConfirmChannel, type Options } from 'amqplib';
import { readCommandLine } from '@app/rabbitmq-admin/accounts/command-line';
import { ACCOUNTS } from '@app/rabbitmq-admin/accounts/rights';
import { run } from '@app/rabbitmq-admin/accounts/run';
import { ManagementApi } from '@app/rabbitmq-admin/management-api';
import { createTestBroker, type TestBroker } from '@app/testing/broker/broker';
import { eventually } from '@app/testing/eventually';
import { requiredEnv } from '@app/testing/required-env';
import { notification } from '@app/testing/system/notification';
import { System } from '@app/testing/system/system';

/** Every process with its own broker account, as in production. */
describe('a system with least permissions', () => {
  let broker: TestBroker;
  let system: System;
  let names: Record<(typeof ACCOUNTS)[number], string>;
  let admin: ChannelModel;
  let publisher: ChannelModel;
  let channel: ConfirmChannel;
  let tenant: { 'x-svc-api-key': string; 'x-svc-auth-token': string };

  beforeAll(async () => {
    broker = await createTestBroker();
    const vhost = new URL(broker.url).pathname.slice(1);
    names = Object.fromEntries(ACCOUNTS.map((account) => [account, `${account}-${vhost}`])) as typeof names;
    const urlOf = (account: (typeof ACCOUNTS)[number]) => {
      const url = new URL(broker.url);
      url.username = names[account];
      url.password = 'secret';
      return url.href;
    };
    system = await System.start({
      wholeSetUp: true,
      amqpUrl: broker.url,
      env: {
        RABBITMQ_MANAGEMENT_URL: requiredEnv('TEST_RABBITMQ_MANAGEMENT_URL'),
        ...Object.fromEntries(ACCOUNTS.map((account) => [`${account.toUpperCase()}_AMQP_URL`, urlOf(account)])),
        TRUSTED_PUBLISHERS: [names.gateway, names.users, names.notifications].join(),
      },
    });
    tenant = await system.createKey();
    admin = await connect(broker.url);
    publisher = await connect(urlOf('publisher'));
    channel = await publisher.createConfirmChannel();
  });
  afterAll(async () => {
    await publisher?.close();
    await admin?.close();
    await system?.stop();
    for (const name of Object.values(names)) await broker.management.delete(`users/${name}`);
    await broker.drop();
  });

  const publish = async (notificationId: string, apiKey: string, options: Options.Publish = {}) => {
    const body = Buffer.from(JSON.stringify(notification({ notificationId })));
    channel.publish('commands', 'notifications.add.v1', body, { headers: { 'x-api-key': apiKey }, persistent: true, ...options });
    await channel.waitForConfirms();
  };
  const ids = async (headers: Record<string, string>) => {
    const { body } = await system.call('notifications/get', { organizationId: 'org', documentId: 'doc' }, headers);
    return (body.result?.data as { id: string }[]).map(({ id }) => id);
  };
  /** The next dead letter with this id. Dead letters of an earlier attempt may arrive late, and are skipped. */
  const deadLetter = async (id: string, queue = 'notifications.commands.refused') => {
    const looking = await admin.createChannel();
    try {
      return await eventually(async () => {
        const letter = await looking.get(queue, { noAck: true });
        return letter && letter.content.includes(`"${id}"`) && letter;
      });
    } finally {
      await looking.close();
    }
  };

  it('does all three operations', async () => {
    const users = { organizationId: 'org', users: [{ userId: 'ada' }] };
    expect((await system.call('users/add', users, tenant)).status).toBe(200);
    expect((await system.call('notifications/add', notification({ notificationId: 'http' }), tenant)).status).toBe(200);
    expect(await ids(tenant)).toEqual(['http']);
    const ofUser = await system.call('notifications/get', { organizationId: 'org', userId: 'ada' }, tenant);
    expect(ofUser.body.result?.data).toHaveLength(1);
    const missing = notification({ notificationId: 'x', documentId: 'none', createDocument: false });
    expect((await system.call('notifications/add', missing, tenant)).status).toBe(404);
  });

  it('refuses a publisher without a grant for the tenant, and accepts it with one', async () => {
    const apiKey = tenant['x-svc-api-key'];
    await publish('refused', apiKey, { userId: names.publisher, messageId: 'm' });
    const dead = await deadLetter('refused');
    expect(dead && dead.properties.headers).toMatchObject({
      'x-dead-status': 'PERMISSION_DENIED',
      'x-dead-reason': `The broker account "${names.publisher}" may not act for this API key.`,
      'x-origin-user': names.publisher,
    });
    await system.keys('grant', apiKey, '--publisher', names.publisher);
    await eventually(async () => {
      await publish('granted', apiKey, { userId: names.publisher });
      return (await ids(tenant)).includes('granted');
    });
    expect(await ids(tenant)).not.toContain('refused');
    await system.keys('withdraw', apiKey, '--publisher', names.publisher);
    const looking = await admin.createChannel();
    await looking.purgeQueue('notifications.commands.refused');
    await eventually(async () => {
      await publish('withdrawn', apiKey, { userId: names.publisher });
      const letter = await looking.get('notifications.commands.refused', { noAck: true });
      return letter && letter.content.includes('"withdrawn"');
    });
    await looking.close();
  });

  it('says after a grant when the broker has no such account, and grants nevertheless', async () => {
    const apiKey = tenant['x-svc-api-key'];
    expect(await system.notesOf(['keys', 'grant', apiKey, '--publisher', names.publisher])).toBe('');
    const unknown = `unknown-${names.publisher}`;
    expect(await system.notesOf(['keys', 'grant', apiKey, '--publisher', unknown])).toContain(
      `The broker has no account "${unknown}" yet.`,
    );
    expect(await system.tool(['keys', 'list'])).toContain(`publisher ${unknown}`);
    for (const publisher of [unknown, names.publisher]) await system.keys('withdraw', apiKey, '--publisher', publisher);
  });

  it('refuses a message without user_id unless the tenant is granted to all accounts', async () => {
    await publish('nameless', tenant['x-svc-api-key']);
    const dead = await deadLetter('nameless');
    expect(dead && dead.properties.headers?.['x-dead-reason']).toBe('A message without user_id may not act for this API key.');
    await publish('nameless', 'demo-key');
    await eventually(async () => (await ids({})).includes('nameless'));
  });

  it('does not trust a publisher that forges the headers of a retry', async () => {
    const headers = { 'x-api-key': tenant['x-svc-api-key'], 'x-origin-user': names.gateway, 'x-attempt': 2 };
    await publish('forged', tenant['x-svc-api-key'], { headers });
    const dead = await deadLetter('forged');
    expect(dead && dead.properties.headers).toMatchObject({ 'x-dead-status': 'PERMISSION_DENIED' });
    expect(dead && dead.properties.headers).not.toHaveProperty('x-origin-user');
  });

  it.each([
    [
      'a binding of its lane',
      true,
      async (own: ConfirmChannel, dead: string) => {
        await own.bindExchange('commands.1', dead, '');
      },
    ],
    [
      'a queue for replies that dead-letters into its lane',
      false,
      async (own: ConfirmChannel, dead: string) => {
        const { queue } = await own.assertQueue('', {
          exclusive: true,
          messageTtl: 0,
          deadLetterExchange: 'commands.1',
          deadLetterRoutingKey: 'users.add.v1',
        });
        await own.bindQueue(queue, dead, '');
      },
    ],
  ])(
    'executes no operation that an account may not publish, on the way of the exchange of its dead letters and of %s',
    async (_, isProved, prepare) => {
      const api = new ManagementApi(requiredEnv('TEST_RABBITMQ_MANAGEMENT_URL'), broker.url);
      const name = `both-${names.publisher}`;
      const accounts = (...args: string[]) => run(api, broker.url, readCommandLine(args)!);
      const purpose = ['--operations', 'notifications.add.v1', '--lane', '1', '--replies', '--events', 'user.added.v1'];
      const { url } = (await accounts('create', name, ...purpose)).data;
      const apiKey = tenant['x-svc-api-key'];
      // To all accounts: the broker proves no account of what was dead-lettered.
      await system.keys('grant', apiKey, '--publisher', '*');
      const model = await connect(url as string);
      const own = await model.createConfirmChannel();
      await prepare(own, `${name}.events.dead`);
      const body = Buffer.from(JSON.stringify({ organizationId: 'org', users: [{ userId: 'intruder' }] }));
      const headers = { 'x-api-key': apiKey };
      own.publish(`${name}.events.dead`, 'users.add.v1', body, { userId: name, messageId: 'detour', headers });
      await own.waitForConfirms();
      const dead = await deadLetter('intruder', 'users.commands.refused');
      expect(dead && dead.properties.headers).toMatchObject({
        'x-dead-status': 'INVALID_ARGUMENT',
        ...(isProved && { 'x-origin-user': name }),
      });
      const { body: answer } = await system.call('users/get', { organizationId: 'org' }, tenant);
      expect(JSON.stringify(answer)).not.toContain('intruder');
      await model.close();
      await accounts('delete', name, '--queues');
      await system.keys('withdraw', apiKey, '--publisher', '*');
    },
  );
});
