import { connect, type ChannelModel, type ConfirmChannel, type Options } from 'amqplib';
import { Client } from 'pg';
import type { ErrorBody } from '@app/contracts/error';
import { eventually } from '@app/testing/eventually';
import { PUBLISHED_OPERATIONS, exampleOf, problemsOf } from '@app/testing/broker/published-messages';
import { requiredEnv } from '@app/testing/required-env';
import { notification } from '@app/testing/system/notification';
import { patternOf, type System } from '@app/testing/system/system';

/** The account of all processes in this test, services included. */
const OWN_ACCOUNT = new URL(requiredEnv('TEST_AMQP_URL')).username;

/** Another service that publishes to the broker, with plain AMQP and none of our libraries. */
export const directPublisher = (system: () => System): void =>
  describe('a service that publishes directly', () => {
    let connection: ChannelModel;
    let channel: ConfirmChannel;

    beforeAll(async () => {
      connection = await connect(system().amqpUrl);
      channel = await connection.createConfirmChannel();
    });
    afterAll(async () => {
      await connection.close();
    });

    const body = (differences: object = {}) => JSON.stringify(notification({ documentId: 'direct', ...differences }));
    const publish = (content: string, options: Options.Publish = {}, key = 'notifications.add.v1') =>
      new Promise<void>((resolve, reject) =>
        channel.publish('commands', key, Buffer.from(content), { headers: { 'x-api-key': 'demo-key' }, ...options }, (error) =>
          error ? reject(error as Error) : resolve(),
        ),
      );
    /** @returns the reply */
    const ask = async (content: string, options: Options.Publish, key: string) => {
      const { queue } = await channel.assertQueue('', { exclusive: true });
      await channel.bindQueue(queue, 'replies', queue);
      await publish(content, { ...options, replyTo: queue }, key);
      const reply = await eventually(async () => await channel.get(queue, { noAck: true }));
      if (!reply) throw new Error('there is no reply');
      return reply;
    };
    const ids = async (documentId: string) => {
      const { body: answer } = await system().call('notifications/get', { organizationId: 'org', documentId });
      return (answer.result?.data as { id: string }[]).map(({ id }) => id);
    };
    const deadLetter = () => eventually(async () => await channel.get('notifications.commands.refused', { noAck: true }));

    it('needs a routing key, a JSON body and x-api-key, and sees the notification in the next get', async () => {
      await publish(body({ notificationId: 'direct 1' }));
      await eventually(async () => (await ids('direct')).includes('direct 1'));
    });

    it('may publish the same message many times', async () => {
      const options = { messageId: 'message-1', persistent: true };
      for (let times = 0; times < 20; times++) await publish(body({ documentId: 'repeated' }), options);
      await publish(body({ documentId: 'repeated', notificationId: 'last' }));
      await eventually(async () => (await ids('repeated')).includes('last'));
      expect((await ids('repeated')).sort()).toEqual(['last', 'message-1']);
    });

    it.each([
      ['64 light commands', 64, 2],
      ['8 commands with 100 recipients', 8, 100],
    ])('has two statements written at once from one lane, which admits %s', async (documentId, admitted, recipients) => {
      const sql = new Client({ connectionString: system().databaseUrl });
      await sql.connect();
      const writing = `SELECT FROM pg_stat_activity
        WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '%moment AS MATERIALIZED%'`;
      const stored = 'SELECT FROM notifications.notifications WHERE document_id = $1';
      // For a second after a call of an earlier test, the lanes leave room for calls.
      const alone = performance.now() + 1100;
      await eventually(() => performance.now() > alone);
      try {
        await sql.query('BEGIN; LOCK TABLE notifications.notifications IN EXCLUSIVE MODE');
        const notifyUsers = Array.from({ length: recipients }, (_, index) => {
          const userId = `recipient${index}`;
          return { userId, name: `Recipient ${index}`, email: `${userId}@example.com` };
        });
        const options = (number: number) => ({ messageId: `${documentId} ${number}`, persistent: true });
        const numbers = Array.from({ length: 2 * admitted }, (_, number) => number);
        await Promise.all(numbers.map((number) => publish(body({ documentId, notifyUsers }), options(number))));
        await eventually(async () => {
          // A transaction sees the activity of its first look.
          await sql.query('SELECT pg_stat_clear_snapshot()');
          return (await sql.query(writing)).rowCount === 2;
        });
        await sql.query('COMMIT');
        await eventually(async () => (await sql.query(stored, [documentId])).rowCount === numbers.length);
      } finally {
        await sql.end();
      }
    });

    it('gets a reply when it asks for one', async () => {
      const { queue } = await channel.assertQueue('', { exclusive: true });
      await channel.bindQueue(queue, 'replies', queue);
      const replies: { correlationId: unknown; status: unknown; body: unknown }[] = [];
      await channel.consume(
        queue,
        (message) => {
          if (!message) return;
          const { correlationId, headers } = message.properties;
          replies.push({ correlationId, status: headers?.['x-status'], body: JSON.parse(message.content.toString()) });
        },
        { noAck: true },
      );
      await publish(body({ notificationId: 'asked' }), { replyTo: queue, correlationId: 'call-1' });
      await publish(body({ notificationId: 7 }), { replyTo: queue, correlationId: 'call-2' });
      await eventually(() => replies.length === 2);
      replies.sort((a, b) => String(a.correlationId).localeCompare(String(b.correlationId)));
      expect(replies[0]).toMatchObject({
        correlationId: 'call-1',
        status: 'OK',
        body: { status: 'success', data: { success: true } },
      });
      expect(replies[1]).toMatchObject({
        correlationId: 'call-2',
        status: 'INVALID_ARGUMENT',
        body: { status: 'INVALID_ARGUMENT', message: 'notificationId must be a string' },
      });
      expect(await ids('direct')).toContain('asked');
    });

    it.each(PUBLISHED_OPERATIONS)('may send the published example of %s, and gets the published reply', async (key) => {
      const { headers, payload } = exampleOf(key);
      const reply = await ask(JSON.stringify(payload), { headers, messageId: key, correlationId: key }, key);
      const answer = { headers: reply.properties.headers, payload: JSON.parse(reply.content.toString()) as unknown };
      expect(answer.headers).toMatchObject({ 'x-status': 'OK' });
      expect(problemsOf(`${key}.reply`, answer)).toEqual([]);
      expect(reply.properties.correlationId).toBe(key);
    });

    it.each([
      [{ locationId: 'l', notificationIds: ['n'] }, ['locationId', 'notificationIds']],
      [{}, ['documentId', 'userId']],
    ])('learns which filters do not go together in %j, and an HTTP caller that it is data', async (filters, fields) => {
      const asked = { organizationId: 'acme', ...filters };
      const { content } = await ask(JSON.stringify(asked), {}, 'notifications.get.v1');
      const { details } = JSON.parse(content.toString()) as ErrorBody;
      expect(details?.map(({ field }) => field)).toEqual(fields);
      const { status, body: answer } = await system().call('notifications/get', asked);
      const message = expect.stringContaining('combination of filters') as string;
      expect([status, answer]).toMatchObject([400, { error: { message, details: [{ field: 'data', message }] } }]);
    });

    it.each([
      ['notifications/update', { notifications: [{ id: 'a' }, { id: 'a' }] }, 'notifications[1].id occurs twice'],
      [
        'notifications/delete',
        { notificationIds: ['a'], pageToken: 'WzFd' },
        'pageToken is not allowed together with notificationIds',
      ],
    ] as const)(
      'learns of a mistake in %s by the path in its body, an HTTP caller by the path in data',
      async (operation, fields, problem) => {
        const asked = { organizationId: 'acme', ...fields };
        const { content } = await ask(JSON.stringify(asked), {}, patternOf(operation));
        expect(JSON.parse(content.toString())).toMatchObject({ status: 'INVALID_ARGUMENT', message: problem });
        const { body: answer } = await system().call(operation, asked);
        expect(answer.error?.message).toBe(`data.${problem}`);
      },
    );

    it('gets the published error when the example is broken', async () => {
      const { headers, payload } = exampleOf('users.add.v1');
      const reply = await ask(JSON.stringify({ ...payload, users: [] }), { headers }, 'users.add.v1');
      const answer = { headers: reply.properties.headers, payload: JSON.parse(reply.content.toString()) as unknown };
      expect(problemsOf('error.INVALID_ARGUMENT', answer)).toEqual([]);
      expect(problemsOf('users.add.v1.reply', answer)).not.toEqual([]);
    });

    it.each<[string, string, Options.Publish, string, string]>([
      ['no JSON', 'hello', { messageId: 'a' }, 'notifications.add.v1', 'INVALID_ARGUMENT'],
      ['an invalid field', '{"organizationId":1}', { messageId: 'b' }, 'notifications.add.v1', 'INVALID_ARGUMENT'],
      ['no x-api-key', body(), { messageId: 'c', headers: {} }, 'notifications.add.v1', 'INVALID_ARGUMENT'],
      [
        'an unknown API key',
        body(),
        { messageId: 'd', headers: { 'x-api-key': 'nobody' }, userId: OWN_ACCOUNT },
        'notifications.add.v1',
        'UNAUTHENTICATED',
      ],
      [
        'an API key that it has no grant for',
        body(),
        { messageId: 'e', headers: { 'x-api-key': 'nobody' } },
        'notifications.add.v1',
        'PERMISSION_DENIED',
      ],
      ['no identity', body(), {}, 'notifications.add.v1', 'INVALID_ARGUMENT'],
      ['an identity that is none', body(), { messageId: 'a\0b' }, 'notifications.add.v1', 'INVALID_ARGUMENT'],
      ['a blank identity', body(), { messageId: ' ' }, 'notifications.add.v1', 'INVALID_ARGUMENT'],
    ])('finds its message in the refused letters with the reason: %s', async (_, content, options, key, status) => {
      await publish(content, options, key);
      const dead = await deadLetter();
      expect(dead && dead.content.toString()).toBe(content);
      expect(dead && dead.properties.headers).toMatchObject({
        'x-dead-status': status,
        'x-dead-reason': expect.any(String) as string,
      });
      expect(await ids('direct')).not.toContain(options.messageId);
    });

    it.each([
      ['no identity', {}, 'message_id is required in a message that deletes.'],
      ['a blank identity', { messageId: ' ' }, 'message_id must not be blank'],
    ])('finds its deletion in the refused letters, and nothing deleted: %s', async (_, options, reason) => {
      const content = JSON.stringify({ organizationId: 'org', documentId: 'direct' });
      const before = await ids('direct');
      await publish(content, options, 'notifications.delete.v1');
      const dead = await deadLetter();
      expect(dead && dead.content.toString()).toBe(content);
      expect(dead && dead.properties.headers).toMatchObject({ 'x-dead-status': 'INVALID_ARGUMENT', 'x-dead-reason': reason });
      expect(await ids('direct')).toEqual(before);
      expect(before).toContain('direct 1');
    });
  });
