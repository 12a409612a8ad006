import { readFileSync } from 'node:fs';
import { connect, type ChannelModel, type Message } from 'amqplib';
import { Client } from 'pg';
import { ALL_EVENTS } from '@app/contracts/all-events';
import type { CloudEvent } from '@app/contracts/event';
import { validateBody } from '@app/contracts/validate';
import { eventually } from '@app/testing/eventually';
import { problemsOf } from '@app/testing/broker/published-messages';
import { withParameters } from '@app/testing/database/documented-sql';
import { rowsWith } from '@app/testing/database/rows-with';
import { System } from '@app/testing/system/system';

/** Another service that listens to events, with plain AMQP and its own queue. */
describe('a service that listens to events', () => {
  let system: System;
  let connection: ChannelModel;
  const messages: Message[] = [];

  beforeAll(async () => {
    system = await System.start();
    connection = await connect(system.amqpUrl);
    const channel = await connection.createChannel();
    await channel.assertQueue('listener');
    for (const { type } of ALL_EVENTS) await channel.bindQueue('listener', 'events', type);
    await channel.consume('listener', (message) => void (message && messages.push(message)), { noAck: true });
  });
  afterAll(async () => {
    await connection?.close();
    await system?.stop();
  });

  const events = () => messages.map(({ content }) => JSON.parse(content.toString()) as CloudEvent<Record<string, unknown>>);
  /** Number of rows that each statement of docs/personal-data.md finds. */
  const personalData = async (userId: string) => {
    const page = readFileSync('docs/personal-data.md', 'utf8');
    const [, statements] = /<!-- personal-data:begin -->\s+```sql\n(.*?)```/s.exec(page) ?? [];
    const sql = new Client({ connectionString: system.databaseUrl });
    await sql.connect();
    const found = [];
    for (const statement of withParameters(statements.trim(), ['key', 'user']).split(/(?<=;)\n+/))
      found.push((await sql.query(statement, ['demo-key', userId])).rowCount ?? 0);
    await sql.end();
    return found;
  };
  const next = (type: string) =>
    eventually(() => events().find((event) => event.type === type)) as Promise<CloudEvent<Record<string, unknown>>>;

  it('gets events of users and organizations from users/add and users/delete', async () => {
    await system.call('users/add', { organizationId: 'org', documentId: 'd', users: [{ userId: 'ada', name: 'Ada' }] });
    const added = await next('user.added.v1');
    const number = expect.any(Number) as number;
    expect(added).toEqual({
      specversion: '1.0',
      id: expect.stringMatching(/^[0-9a-f-]{36}$/) as string,
      source: '/users',
      type: 'user.added.v1',
      subject: 'org',
      time: expect.stringMatching(/^\d{4}-.*Z$/) as string,
      datacontenttype: 'application/json',
      apikey: 'demo-key',
      data: {
        organizationId: 'org',
        documentId: 'd',
        users: [{ userId: 'ada', name: 'Ada', initial: 'A', version: number, membership: number }],
      },
    });
    expect(await next('organization.created.v1')).toMatchObject({ subject: 'org', data: { organizationId: 'org', version: 1 } });
    const { properties } = messages.find(({ fields }) => fields.routingKey === 'user.added.v1') ?? {};
    expect(properties).toMatchObject({
      messageId: added.id,
      type: 'user.added.v1',
      contentType: 'application/cloudevents+json',
      deliveryMode: 2,
      appId: 'users',
    });
    await system.call('users/delete', { organizationId: 'org', documentId: 'd', userIds: ['ada', 'nobody'] });
    const removed = { organizationId: 'org', documentId: 'd', users: [{ userId: 'ada', version: number }] };
    expect(await next('user.removed.v1')).toMatchObject({ source: '/users', subject: 'org', data: removed });
  });

  it('gets events of documents from documents.set', async () => {
    const channel = await connection.createConfirmChannel();
    const body = Buffer.from(JSON.stringify({ organizationId: 'org', documentId: 'd', folderId: 'f', access: 'restricted' }));
    channel.publish('commands', 'documents.set.v1', body, { headers: { 'x-api-key': 'demo-key' }, persistent: true });
    await channel.waitForConfirms();
    const { data } = await next('document.changed.v1');
    expect(data).toMatchObject({ organizationId: 'org', documentId: 'd', folderId: 'f', access: 'restricted' });
  });

  it('gets all data for an e-mail from notifications/add, once for a repeated call', async () => {
    const notification = {
      organizationId: 'org',
      documentId: 'd',
      locationId: 'l',
      notificationId: 'n1',
      actionUser: { userId: 'ada', name: 'Ada' },
      displayHeadlineMessageTemplate: '{actionUser} mentioned {recipientUser} in {place}',
      displayHeadlineMessageTemplateData: { actionUser: { userId: 'ada' }, place: 'the "plan" \u2028 \\' },
      displayBodyMessage: 'Look.',
      notifyUsers: [{ userId: 'grace', email: 'grace@example.com' }],
      notificationSourceData: { a: [1, null, { b: 'ü' }] },
    };
    for (let time = 0; time < 3; time++) expect((await system.call('notifications/add', notification)).status).toBe(200);
    const { data, source } = await next('notification.added.v1');
    expect(source).toBe('/notifications');
    expect(data).toEqual({ ...notification, notifyAll: false, timestamp: expect.any(Number) as number, version: 1 });
    await system.call('notifications/add', { ...notification, notificationId: 'n2' });
    await eventually(() => events().some((event) => event.data.notificationId === 'n2'));
    expect(events().filter((event) => event.data.notificationId === 'n1')).toHaveLength(1);
  });

  it('gets events of notifications that are read or deleted', async () => {
    await system.call('notifications/update', { organizationId: 'org', userId: 'grace', readUpTo: Date.now() });
    const changed = await eventually(() =>
      events().findLast(({ type, data }) => type === 'inbox.changed.v1' && String(data.userIds) === 'grace'),
    );
    expect(changed).toMatchObject({ subject: 'org', data: { organizationId: 'org', userIds: ['grace'] } });
    await system.call('notifications/delete', { organizationId: 'org', notificationIds: ['n1', 'unknown'] });
    // At once, unless the row of the first event is still in the outbox.
    const deleted = await eventually(() => events().find(({ type }) => type === 'notification.deleted.v1'));
    expect(deleted).toMatchObject({
      source: '/notifications',
      data: { organizationId: 'org', notificationIds: ['n1'], version: 1 },
    });
  });

  it('gets the event of users whose data users/data/delete erases', async () => {
    const canary = { userId: 'canary', name: 'Canary', email: 'canary@example.com' };
    await system.call('users/add', { organizationId: 'org', documentId: 'd', users: [canary] }, { 'idempotency-key': 'k' });
    await system.call('notifications/add', {
      organizationId: 'org',
      documentId: 'e',
      notificationId: 'kept',
      actionUser: canary,
      displayHeadlineMessageTemplate: '{actionUser} wrote',
      displayHeadlineMessageTemplateData: { actionUser: canary },
      notifyUsers: [canary, { userId: 'grace' }],
    });
    await system.call('notifications/update', {
      organizationId: 'org',
      notifications: [{ id: 'kept', readByUserIds: ['canary'] }],
    });
    await system.call('notifications/update', { organizationId: 'org', userId: 'canary', readUpTo: 1 });
    await system.call('notifications/add', {
      organizationId: 'org',
      documentId: 'e',
      actionUser: { userId: 'grace' },
      displayHeadlineMessageTemplate: 'To all',
    });
    // A read copies the memberships.
    await system.call('notifications/get', { organizationId: 'org', userId: 'canary' });
    expect(await personalData('canary')).toEqual([1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0]);
    expect((await system.call('users/data/delete', { userIds: ['canary'] })).body.result).toEqual({
      status: 'success',
      message: 'Data deletion process has been initiated.',
      data: {},
    });
    expect((await system.call('users/get', { organizationId: 'org', userIds: ['canary'] })).body.result).toMatchObject({
      data: [],
    });
    const number = expect.any(Number) as number;
    expect(await next('user.erased.v1')).toMatchObject({
      source: '/users',
      subject: 'demo-key',
      data: { userIds: ['canary'], version: number, upTo: number },
    });
  });

  it('gets the event of a revoked key, at once and without a token', async () => {
    const { 'x-svc-api-key': key, 'x-svc-auth-token': token } = await system.createKey();
    await system.keys('disable', key);
    const revoked = await next('api-key.revoked.v1');
    expect(revoked).toMatchObject({ source: '/users', subject: key, apikey: key, data: { apiKey: key, reason: 'disabled' } });
    expect(JSON.stringify(revoked)).not.toContain(token);
  });

  it('does not delay other listeners or the system when it refuses events', async () => {
    const channel = await connection.createChannel();
    await channel.assertQueue('stuck', { arguments: { 'x-max-length': 1, 'x-overflow': 'reject-publish' } });
    for (const { type } of ALL_EVENTS) await channel.bindQueue('stuck', 'events', type);
    const { queue: own } = await channel.assertQueue('', { exclusive: true });
    await channel.bindQueue(own, 'events.own', 'api-key.revoked.v1');
    // More than one batch of a relay.
    const users = Array.from({ length: 450 }, (_, n) => n);
    const sql = new Client({ connectionString: system.databaseUrl });
    await sql.connect();
    await sql.query(
      `INSERT INTO users.outbox (type, api_key, organization_id, data)
       SELECT 'document.changed.v1', 'demo-key', 'refused', json_build_object('organizationId', 'refused', 'documentId', n::text, 'access', 'public', 'version', 1)
       FROM unnest($1::int[]) n`,
      [users],
    );
    const { 'x-svc-api-key': key } = await system.createKey();
    await system.keys('disable', key);
    const isRevocation = ({ data }: CloudEvent<Record<string, unknown>>) => data.apiKey === key;
    const revocation = await eventually(async () => await channel.get(own, { noAck: true }));
    expect(revocation && isRevocation(JSON.parse(revocation.content.toString()) as CloudEvent<Record<string, unknown>>)).toBe(
      true,
    );
    await eventually(() => events().some(isRevocation));
    const published = () =>
      new Set(
        events()
          .filter(({ subject }) => subject === 'refused')
          .map(({ id }) => id),
      );
    await eventually(() => published().size === users.length);
    // Now it accepts them.
    await channel.deleteQueue('stuck');
    await eventually(async () => (await sql.query('SELECT FROM users.outbox')).rowCount === 0);
    await sql.end();
    await channel.close();
  });

  it('gets the event of the end of an erasure, when no table and no log has the user any more', async () => {
    const ended = await eventually(() => events().find(({ type }) => type === 'user.data-deleted.v1'));
    expect(ended).toMatchObject({ source: '/notifications', subject: 'demo-key', data: { userIds: ['canary'] } });
    const last = events().findLastIndex((event) => JSON.stringify(event).includes('canary@example.com'));
    expect(events().findIndex(({ type }) => type === 'user.data-deleted.v1')).toBeGreaterThan(last);
    const traces = async () =>
      (await rowsWith(system.databaseUrl, 'canary')).filter((row) => !row.startsWith('notifications.outbox'));
    expect(await traces()).toEqual([]);
    expect(await personalData('canary')).toEqual([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
    expect(await rowsWith(system.databaseUrl, 'kept')).not.toEqual([]);
    const log = () => Object.values(system.services).flatMap(({ output }) => output);
    await eventually(() => log().filter((line) => line.includes('an erasure is complete')).length === 2);
    expect(log().filter((line) => line.includes('canary'))).toEqual([]);
    const { body } = await system.call('notifications/get', { organizationId: 'org', documentId: 'e' });
    expect(body.result?.data).toMatchObject([
      { actionUser: { userId: 'grace' } },
      { id: 'kept', actionUser: { userId: 'erased' }, notifyUsers: { grace: true } },
    ]);
    expect(JSON.stringify(body)).not.toContain('canary');
  });

  it('finds exactly the fields of the contract in each event', () => {
    for (const event of ALL_EVENTS) {
      const published = events().filter(({ type }) => type === event.type);
      expect(published.length).toBeGreaterThan(0);
      for (const { data } of published) expect(validateBody(event.data, data)).toEqual(data);
    }
  });

  it('finds that every message matches asyncapi.json', () => {
    for (const { fields, properties, content } of messages) {
      const payload = JSON.parse(content.toString()) as CloudEvent<unknown>;
      // There are hundreds of equal ones.
      if (payload.subject === 'refused') continue;
      expect(problemsOf(fields.routingKey, { headers: properties.headers, payload })).toEqual([]);
    }
    expect(problemsOf('user.added.v1', { headers: {}, payload: {} })).not.toEqual([]);
  });
});
