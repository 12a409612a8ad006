import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { connect, type Channel, type ChannelModel, type ConfirmChannel, type Message } from 'amqplib';
import { Client } from 'pg';
import { ApiKeyRevoked } from '@app/contracts/events.users';
import { eventually } from '@app/testing/eventually';
import { EARLIER_BINDINGS } from '@app/rabbitmq/topology/earlier-topology';
import { requiredEnv } from '@app/testing/required-env';
import { OPERATIONS, patternOf, System } from '@app/testing/system/system';
import { EVENTS, EXCHANGES, FIXTURES, type Exchange } from '../compat/fixtures';

const OWN_ACCOUNT = new URL(requiredEnv('TEST_AMQP_URL')).username;
/** Whether missing replies of fixtures are recorded: see docs/compatibility.md. */
const RECORDING = process.env.RECORD_FIXTURES === '1';

/** Plays recorded messages of earlier versions to the current processes, over a real broker. */
describe('compatibility with processes of earlier versions', () => {
  let system: System;
  let broker: ChannelModel;
  let channel: ConfirmChannel;
  let replyQueue: string;
  const replies = new Map<string, Message>();

  beforeAll(async () => {
    system = await System.start();
    broker = await connect(system.amqpUrl);
    channel = await broker.createConfirmChannel();
    ({ queue: replyQueue } = await channel.assertQueue('', { exclusive: true }));
    await channel.bindQueue(replyQueue, 'replies', replyQueue);
    await channel.consume(
      replyQueue,
      (message) => void (message && replies.set(String(message.properties.correlationId), message)),
      { noAck: true },
    );
  });
  afterAll(async () => {
    await broker?.close();
    await system?.stop();
  });

  const publish = async (exchange: string, pattern: string, body: unknown, properties: Exchange['properties']) => {
    channel.publish(exchange, pattern, Buffer.from(JSON.stringify(body)), properties);
    await channel.waitForConfirms();
  };

  const ask = async ({ pattern, request, properties }: Exchange) => {
    const headers = { ...properties.headers, 'x-deadline': Date.now() + 5000 };
    await publish('commands', pattern, request, { ...properties, headers, replyTo: replyQueue, userId: OWN_ACCOUNT });
    const { properties: answered, content } = await eventually(() => replies.get(properties.correlationId!)!);
    return { headers: answered.headers as Record<string, string>, body: JSON.parse(content.toString()) as unknown };
  };

  it('services answer earlier gateways and callers, with all fields of the earlier answers', async () => {
    for (const exchange of EXCHANGES) {
      const reply = await ask(exchange);
      if (RECORDING && !('reply' in exchange)) record(exchange, reply);
      expect([exchange.file, reply.headers]).toEqual([exchange.file, expect.objectContaining(exchange.reply.headers)]);
      expect([exchange.file, missing(exchange.reply.body, reply.body)]).toEqual([exchange.file, []]);
    }
  });

  it('listeners accept events of earlier versions', async () => {
    // The queues as the setup leaves them on a broker where earlier versions ran.
    for (const { queue, exchange, routingKey } of EARLIER_BINDINGS) await channel.bindQueue(queue, exchange, routingKey);
    // An addition of more than 29 days ago is not copied.
    const time = new Date().toISOString();
    for (const { pattern, event, properties } of EVENTS) await publish('events', pattern, { ...event, time }, properties);
    const sql = new Client({ connectionString: system.databaseUrl });
    await sql.connect();
    const copied = async () =>
      (
        await sql.query<{ row: string }>(
          `SELECT concat_ws('/', m.user_id, m.level, m.id, CASE WHEN m.removed >= m.added THEN 'removed' END) AS row
           FROM notifications.members m
           JOIN notifications.organizations o ON o.id = m.organization AND o.organization_id = 'events'
           UNION ALL SELECT concat_ws('/', user_id, 'left', version) FROM notifications.departures d
           JOIN notifications.organizations o ON o.id = d.organization AND o.organization_id = 'events'
           UNION ALL SELECT concat_ws('/', document_id, folder_id, access, version) FROM notifications.document_access d
           JOIN notifications.organizations o ON o.id = d.organization AND o.organization_id = 'events' ORDER BY 1`,
        )
      ).rows.map(({ row }) => row);
    const expected = [
      'ada/document/roadmap',
      'alan/document/plain/removed',
      'alan/document/roadmap',
      'alan/folder/plans',
      'alan/left/33',
      'grace/folder/plans/removed',
      'linus/organization/',
      'plain/organizationPrivate/19',
      'roadmap/plans/restricted/20',
      'tim/folder/plans/removed',
    ];
    try {
      await eventually(async () => (await copied()).join() === expected.join());
    } finally {
      await sql.end();
    }
    const { gateway } = system.services;
    const misses = async () =>
      Number(/^gateway_authentications_total\{source="miss"\} (\d+)/m.exec(await gateway.metrics())?.[1]);
    const ask = () => system.call('users/get', { organizationId: 'org' });
    await ask();
    // A gateway hears them in `events.own`, forgets the key, and asks for its credentials anew.
    const revocations = EVENTS.filter(({ pattern }) => pattern === ApiKeyRevoked.type);
    expect(revocations).not.toEqual([]);
    for (const { pattern, event, properties } of revocations) {
      const before = await misses();
      await publish('events.own', pattern, { ...event, time }, properties);
      await eventually(async () => (await ask()) && (await misses()) > before);
    }
  });

  it('the gateway passes on replies of earlier services', async () => {
    await system.services.users.stop();
    await system.services.notifications.stop();
    const services = await broker.createChannel();
    await replyAsBefore(services);
    for (const { pattern, file, request, reply } of EXCHANGES) {
      const operation = OPERATIONS.find((one) => patternOf(one) === pattern);
      if (!operation) continue;
      const { status, body } = await system.call(operation, request);
      const { message, status: code } = reply.body as { message: string; status: string };
      const ok = reply.headers['x-status'] === 'OK';
      expect([file, status === 200, body]).toEqual([
        file,
        ok,
        ok ? { result: reply.body } : { error: { message, status: code } },
      ]);
    }
  });

  /** Answers like the fixture with the same body. Credentials are answered like in the first accepted fixture. */
  async function replyAsBefore(services: Channel): Promise<void> {
    for (const queue of ['users.calls', 'users.calls.queries', 'notifications.calls', 'notifications.calls.queries'])
      await services.consume(queue, (message) => {
        if (!message) return;
        const { fields, properties, content } = message;
        const candidates = EXCHANGES.filter(({ pattern }) => pattern === fields.routingKey);
        const fieldsOf = ({ request }: Exchange) => Object.keys(request).length;
        const [same] = candidates
          .filter(({ request }) => isSame(request, JSON.parse(content.toString())))
          .sort((one, other) => fieldsOf(other) - fieldsOf(one));
        const { reply } = same ?? candidates[0];
        services.publish('replies', String(properties.replyTo), Buffer.from(JSON.stringify(reply.body)), {
          correlationId: properties.correlationId as string,
          contentType: 'application/json',
          headers: reply.headers,
        });
        services.ack(message);
      });
  }
});

function record(exchange: Exchange, reply: Exchange['reply']): void {
  exchange.reply = reply;
  const { file, pattern: _, ...fixture } = exchange;
  writeFileSync(join(FIXTURES, file), `${JSON.stringify(fixture, null, 2)}\n`);
}

/** Whether a current message has all values of an earlier one. */
function isSame(before: unknown, now: unknown): boolean {
  try {
    expect(now).toMatchObject(before as object);
    return true;
  } catch {
    return false;
  }
}

/** Paths of the earlier reply that the current reply lacks or has with another type. Values may differ, for example times and versions. */
function missing(before: unknown, now: unknown, path = ''): string[] {
  if (before === null || typeof before !== 'object') return typeof before === typeof now ? [] : [path];
  if (now === null || typeof now !== 'object') return [path];
  return Object.entries(before).flatMap(([key, value]) =>
    missing(value, (now as Record<string, unknown>)[key], `${path}/${key}`),
  );
}
