import { connect, type ChannelModel, type ConfirmChannel, type ConsumeMessage } from 'amqplib';
import { eventually } from '@app/testing/eventually';
import { report } from '@app/testing/report';
import { Cluster } from './harness/cluster';
import type { Thing } from './harness/journal';
import { Random, seedOfRun } from './harness/random';
import { Workload } from './harness/workload';

/** Most published messages without a confirm. */
const WINDOW = 200;

describe('repetition', () => {
  const seed = seedOfRun();
  const random = new Random(seed);
  let cluster: Cluster;
  let connection: ChannelModel;
  let channel: ConfirmChannel;

  beforeAll(async () => {
    cluster = await Cluster.start(random, { writers: 3 });
    connection = await connect(cluster.broker.url);
    channel = await connection.createConfirmChannel();
  });
  afterAll(async () => {
    await connection.close();
    await cluster.remove();
  });

  const rowsOf = async (organizationId: string) => {
    const { rows } = await cluster.sql.query<{ key: string; id: string; mark: string }>(
      `SELECT o.api_key AS key, n.id, n.content ->> 'displayHeadlineMessageTemplate' AS mark
       FROM notifications.notifications n JOIN notifications.organizations o ON o.id = n.organization
       WHERE o.organization_id = $1`,
      [organizationId],
    );
    return rows;
  };

  it('a command delivered 1-50 times to three writers has one effect, and the same answer each time', async () => {
    const workload = new Workload(cluster, random, 'deliveries');
    const things = Array.from({ length: 200 }, () => workload.newNotification(random.chance(0.5) ? 1 : 0));
    const deliveries = things.flatMap((thing, index) => Array.from({ length: random.between(1, 50) }, () => ({ thing, index })));
    for (let last = deliveries.length - 1; last > 0; last--) {
      const other = random.between(0, last);
      [deliveries[last], deliveries[other]] = [deliveries[other], deliveries[last]];
    }
    const answers = new Map<number, Set<string>>();
    let answered = 0;
    let unavailable = 0;
    const { queue } = await channel.assertQueue('', { exclusive: true });
    await channel.bindQueue(queue, 'replies', queue);
    const onReply = (reply: ConsumeMessage | null) => {
      if (!reply) return;
      const { correlationId, headers } = reply.properties;
      const thing = Number(String(correlationId).split(' ')[0]);
      const answer = `${headers?.['x-status']} ${headers?.['x-notification-id']} ${reply.content.toString()}`;
      answers.set(thing, (answers.get(thing) ?? new Set()).add(answer));
      answered++;
      if (answer.startsWith('UNAVAILABLE ')) unavailable++;
    };
    await channel.consume(queue, onReply, { noAck: true });

    for (const [position, { thing, index }] of deliveries.entries()) {
      channel.publish('commands', 'notifications.add.v1', Buffer.from(JSON.stringify(thing.data)), {
        persistent: true,
        mandatory: true,
        messageId: `message ${index}`,
        replyTo: queue,
        correlationId: `${index} ${position}`,
        headers: {
          'x-api-key': cluster.tenants[thing.tenant]['x-svc-api-key'],
          ...(thing.idempotencyKey && { 'x-idempotency-key': thing.idempotencyKey }),
        },
      });
      if (position % WINDOW === 0) await channel.waitForConfirms();
    }
    await channel.waitForConfirms();
    await eventually(() => answered >= deliveries.length, 60_000);

    // UNAVAILABLE (not executed) is allowed for any delivery, also for the only one.
    const given = things.map((_, index) =>
      [...(answers.get(index) ?? [])].filter((answer) => !answer.startsWith('UNAVAILABLE ')),
    );
    const rows = await rowsOf(workload.organizationId);
    const expected = things
      .filter((_, index) => given[index].length > 0)
      .map((thing) => `${cluster.tenants[thing.tenant]['x-svc-api-key']} ${thing.mark}`)
      .sort();
    expect({ seed, rows: rows.map(({ key, mark }) => `${key} ${mark}`).sort() }).toEqual({ seed, rows: expected });
    const different = given.filter(([answer, another]) => (answer && !answer.startsWith('OK ')) || another);
    expect({ seed, different }).toEqual({ seed, different: [] });
    expect(answered).toBe(deliveries.length);
    await workload.stop();
    workload.journal.remove();
    report({
      fault: `200 commands delivered ${deliveries.length} times over 3 writers`,
      asked: deliveries.length,
      200: answered - unavailable,
      503: unavailable,
      504: 0,
      'no answer': 0,
      lost: 0,
      duplicated: rows.length - expected.length,
      unasked: 0,
      late: 0,
    });
  });

  it('an Idempotency-Key used by 100 concurrent calls has one effect and one answer; another body is refused', async () => {
    const workload = new Workload(cluster, random, 'one key');
    const ofTenant = (tenant: 0 | 1): Thing => ({ ...workload.newNotification(tenant, false), idempotencyKey: 'the key' });
    const [thing, otherTenants] = [ofTenant(0), ofTenant(1)];
    const results = await Promise.all(Array.from({ length: 100 }, (_, call) => workload.ask(call === 50 ? otherTenants : thing)));
    expect(new Set(results.map(({ status }) => status))).toEqual(new Set([200]));
    const ids = new Set(results.filter((_, call) => call !== 50).map(({ id }) => id));
    expect(ids.size).toBe(1);

    const another = await Promise.all(Array.from({ length: 20 }, () => workload.ask(ofTenant(0))));
    expect(new Set(another.map(({ status }) => status))).toEqual(new Set([400]));
    await workload.stop();
    const rows = await rowsOf(workload.organizationId);
    expect(rows.map(({ key, id }) => `${key} ${id}`).sort()).toEqual(
      [`demo-key ${[...ids][0]}`, `${cluster.tenants[1]['x-svc-api-key']} ${results[50]?.id}`].sort(),
    );
    workload.journal.remove();
    report({
      fault: '100 calls at once with one Idempotency-Key, then 20 with another body',
      asked: 120,
      200: 100,
      503: 0,
      504: 0,
      'no answer': 0,
      lost: 0,
      duplicated: rows.length - 2,
      unasked: 0,
      late: 0,
    });
  });
});
