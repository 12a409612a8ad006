import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { connect, type Options } from 'amqplib';
import { commandQueue, SERVICES } from '@app/rabbitmq/topology/topology';
import { eventually } from '@app/testing/eventually';
import type { Cluster } from './cluster';
import type { Random } from './random';
import { lasting, type Fault } from './run-fault';
import type { Answered } from './workload';

/** Declares the topology again, like an operator after a mishap. */
const declareTopology = ({ environment }: Cluster) =>
  promisify(execFile)(process.execPath, [join(process.cwd(), 'scripts/setup.mjs'), 'topology'], {
    env: { PATH: process.env.PATH, ...environment },
  });

/** The broker cancels the consumers of the queue. Waiting commands are lost with it, so their calls are never answered. */
export const recreateQueue = (times: number): Fault => ({
  name: `queue of commands deleted and declared again, ${times} times`,
  // Without the queue a command is returned, and its caller gets 503 at once.
  expected: 503,
  expectedErrors: /the queue notifications.calls does not exist in the broker/,
  async inject({ cluster, random, workload }) {
    for (let time = 0; time < times; time++) {
      await workload.answers(random.between(30, 60));
      await cluster.management.delete('queues/%2F/notifications.calls');
      await declareTopology(cluster);
      await workload.answers(30);
    }
    // Only commands that waited in the queue have no answer.
    const [refused, unanswered] = [workload.count(503), workload.count(504)];
    if (unanswered >= refused)
      throw new Error(`${unanswered} calls had no answer in time, and only ${refused} were refused because there is no queue`);
  },
});

/** The broker closes every channel that publishes to a missing exchange. */
export const recreateExchange = (times: number): Fault => ({
  name: `exchange calls deleted and declared again, ${times} times`,
  expectedErrors: /the exchange calls does not exist in the broker/,
  async inject({ cluster, random, workload }) {
    for (let time = 0; time < times; time++) {
      await workload.answers(random.between(30, 60));
      await cluster.management.delete('exchanges/%2F/calls');
      await workload.asks(20);
      await declareTopology(cluster);
      await workload.answers(30);
    }
  },
});

/** Like an operator, or a broker during an upgrade. */
export const endConnections = (times: number): Fault => ({
  name: `every connection closed by the broker, ${times} times`,
  async inject({ cluster, random, workload }) {
    for (let time = 0; time < times; time++) {
      // The broker updates its list of connections only every few seconds.
      await eventually(() => cluster.management.killConnections(random.pick(['gateway', 'users', 'notifications'])), 30_000);
      await workload.answers(30);
    }
  },
});

/** Longest time of a refusal without a call to a service, in milliseconds. */
const AT_ONCE_MS = 100;

function expectRefusedAtOnce(answers: readonly Answered[]): void {
  const others = answers.filter(({ status }) => status !== 503);
  if (answers.length === 0 || others.length > 0) throw new Error(`${others.length} of ${answers.length} answers are not 503`);
  const slowest = Math.max(...answers.map(({ ms = Infinity }) => ms));
  if (slowest > AT_ONCE_MS) throw new Error(`refused only after ${slowest.toFixed()} ms`);
}

/** The broker stops reading from publishers, and reports that only after the first message. */
export const alarm = (of: 'memory' | 'disk', ms: number): Fault => ({
  name: `${of} alarm of the broker, ${ms / 1000} s`,
  expected: 503,
  async inject({ cluster, workload }) {
    await cluster.broker.order(`${of} alarm on`);
    await eventually(() => workload.count(503) > 0);
    const refusedAt = performance.now();
    await lasting(ms);
    const answers = workload.since(refusedAt);
    await cluster.broker.order(`${of} alarm off`);
    expectRefusedAtOnce(answers);
  },
});

/**
 * The queue has no consumer and fills up.
 * @param messages fewer than a key may have at work beside others: else its further calls wait in the gateway, and are not refused at once
 */
export const fullQueue = (messages: number): Fault => ({
  name: `queue of commands full, with ${messages} in it`,
  expected: 503,
  async inject({ cluster, workload }) {
    const writers = cluster.writers.map(({ process }) => process);
    await cluster.management.limitQueue('notifications.calls', messages);
    await Promise.all(writers.map((process) => process.stop('SIGTERM')));
    await eventually(() => workload.count(503) > 0);
    const fullAt = performance.now();
    await eventually(() => workload.since(fullAt).filter(({ status }) => status === 503).length >= 100, 30_000);
    const refusals = workload.since(fullAt).filter(({ status }) => status === 503);
    await cluster.management.delete('policies/%2F/limit');
    await Promise.all(writers.map((process) => process.start()));
    expectRefusedAtOnce(refusals);
  },
});

/** No malformed message may crash a process or delay other messages: it becomes a refused dead letter with the reason. */
export const malformedMessages = (count: number): Fault => ({
  name: `${count} malformed messages`,
  async inject({ cluster, random }) {
    const connection = await connect(cluster.broker.url);
    const channel = await connection.createConfirmChannel();
    const waiting = async () => {
      const queues = SERVICES.map((service) => channel.checkQueue(commandQueue(service, 0)));
      return (await Promise.all(queues)).reduce((sum, { messageCount }) => sum + messageCount, 0);
    };
    const reasons = new Map<string, RegExp>();
    for (let published = 0; published < count; published++) {
      const { body, reason, ...options } = random.pick(MALFORMED)(random);
      const messageId = `malformed ${published}`;
      reasons.set(messageId, reason);
      channel.publish('commands', random.pick(['notifications.add.v1', 'users.add.v1']), body, { messageId, ...options });
      if (published % 100 !== 99) continue;
      await channel.waitForConfirms();
      // Limit the backlog: commands behind thousands of messages would be late, and a full queue is another fault.
      await eventually(async () => (await waiting()) < 100, 30_000);
    }
    await eventually(async () => (await cluster.waiting('dead')) === count, 60_000);
    const wrong: string[] = [];
    for (const queue of ['notifications.commands.refused', 'users.commands.refused']) {
      for (let letter = await channel.get(queue, { noAck: true }); letter; letter = await channel.get(queue, { noAck: true })) {
        const { messageId, headers } = letter.properties;
        const reason = `${headers?.['x-dead-status']} ${headers?.['x-dead-reason']}`;
        if (!reasons.get(String(messageId))?.test(reason)) wrong.push(`${messageId}: ${reason}`);
        reasons.delete(String(messageId));
      }
    }
    await connection.close();
    if (wrong.length > 0) throw new Error(`${wrong.length} dead letters with another reason: ${wrong.slice(0, 5).join('; ')}`);
    if (reasons.size > 0) throw new Error(`${reasons.size} messages are not in the dead letters`);
  },
});

type Malformed = Options.Publish & { body: Buffer; reason: RegExp };

const json = (value: unknown) => Buffer.from(JSON.stringify(value));
const nested = (depth: number) => Buffer.from('['.repeat(depth) + ']'.repeat(depth));
const headers = { 'x-api-key': 'demo-key' };
const valid = {
  organizationId: 'malformed',
  documentId: 'd',
  actionUser: { userId: 'u' },
  displayHeadlineMessageTemplate: 'x',
  users: [{ userId: 'u' }],
  notificationId: 'n',
};

const MALFORMED: ((random: Random) => Malformed)[] = [
  (random) => ({ body: Buffer.from(random.word(random.between(0, 200))), headers, reason: /The body must be (JSON|an object)/ }),
  (random) => ({
    body: Buffer.from([0xff, 0xfe, random.between(0, 255)]),
    headers,
    type: 'error',
    reason: /The body must be UTF-8/,
  }),
  () => ({ body: Buffer.alloc(0), reason: /The header x-api-key is required/ }),
  () => ({ body: json(null), headers, reason: /The body must be an object/ }),
  () => ({ body: json([valid]), headers, reason: /The body must be an object/ }),
  (random) => ({
    body: json({ ...valid, organizationId: random.between(0, 9) }),
    headers,
    reason: /organizationId must be a string/,
  }),
  (random) => ({
    body: json(valid),
    headers: { 'x-api-key': random.pick([1, true, {}, [], '']) },
    reason: /The header x-api-key must (be a string|not be blank)/,
  }),
  (random) => ({
    body: json(valid),
    headers: { 'x-api-key': `nobody ${random.word()}` },
    reason: /PERMISSION_DENIED .* may not act for this API key/,
  }),
  (random) => ({ body: nested(random.between(33, 100_000)), headers, reason: /nested/ }),
  () => ({
    body: json({ ...valid, organizationId: 'x'.repeat(300) }),
    headers,
    correlationId: 'error',
    reason: /organizationId must be at most 256 bytes/,
  }),
  () => ({ body: Buffer.from('{"organizationId":"a\\u0000b"}'), headers, priority: 200, reason: /NUL character/ }),
  () => ({
    body: json({ ...valid, users: 'all', actionUser: 7 }),
    headers,
    type: 'x',
    reason: /(actionUser must be an object|users must be an array)/,
  }),
];
