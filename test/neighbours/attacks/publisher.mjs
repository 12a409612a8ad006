// Services that may only publish notifications for their own tenant.
import { BROKER_SETTINGS } from '../../../scripts/servers/rabbitmq/settings.mjs';
import { attackBy, BrokerClient } from './broker-client.mjs';
import { notification, pause, unique } from './calls.mjs';

/** @typedef {import('../neighbour-system.ts').Target} Target */
/** @typedef {import('./broker-client.mjs').Message} Message */

export const ADD = 'notifications.add.v1';
const MEBIBYTE = 1024 * 1024;

/**
 * @param {Target} target
 * @param {object} [changes]
 * @param {import('amqplib').Options.Publish} [options]
 * @returns {Message}
 */
export const commandOf = ({ tenant }, changes = {}, options = {}) => [
  ADD,
  Buffer.from(JSON.stringify(notification(changes))),
  { persistent: true, messageId: unique(), headers: { 'x-api-key': tenant['x-svc-api-key'] }, ...options },
];

/** @param {number} bytes @returns {Message} */
const rubbish = (bytes) => [ADD, Buffer.alloc(bytes, 'not JSON '), { persistent: true }];

/** The largest body that the broker takes. */
const LARGEST = BROKER_SETTINGS.rabbit.max_message_size;
/** In each burst: more than consumers are sent, and than their queue takes. */
const BURST = Math.floor((1024 * MEBIBYTE) / LARGEST);
const BURST_MS = 4000;
/** They stay in the attacker's memory. */
const UNCONFIRMED_LARGE = Math.floor((256 * MEBIBYTE) / LARGEST);

/** The queue of our own failures. */
const DEAD = 'notifications.commands.dead';
/** Longer than a service waits until it tries to publish a letter again. */
const ROOM_MS = 8000;
const AGAIN_MS = 100;

/** More bodies of 1 MiB than a queue of 256 MiB takes. */
const FILLS = 262;
/** A queue refuses a little later than its length says. */
const MOST_LETTERS = 2 * FILLS;

/**
 * Fills the queue until it refuses.
 * @param {Target} target
 */
async function fillDeadLetters({ operatorUrl }) {
  const operator = await BrokerClient.open({ url: operatorUrl, exchange: 'dead' });
  const letter = Buffer.alloc(MEBIBYTE, 'x');
  const headers = { 'x-dead-status': 'INTERNAL', 'x-dead-reason': 'made for a test' };
  while (operator.refused === 0 && operator.published < MOST_LETTERS) {
    const batch = Array.from({ length: 16 }, () =>
      operator.publish(DEAD, letter, { persistent: true, headers, userId: undefined }),
    );
    await Promise.all(batch);
  }
  const made = operator.stop();
  if (operator.refused === 0) throw new Error(`The queue of dead letters is not full: ${made}`);
}

/**
 * Empties that queue like an operator.
 * @param {Target} target
 * @returns the number of letters that waited for the room
 */
async function makeRoom({ operatorUrl }) {
  const { channel } = await BrokerClient.open({ url: operatorUrl });
  await channel.purgeQueue(DEAD);
  for (let waited = 0; waited < ROOM_MS; waited += AGAIN_MS) {
    const { messageCount } = await channel.checkQueue(DEAD);
    if (messageCount > 0) return messageCount;
    await pause(AGAIN_MS);
  }
  throw new Error('No message became a letter of our own failures.');
}

/** @type {import('./all.mjs').Attack[]} */
export const PUBLISHERS = [
  {
    name: '100,000 direct commands at once',
    why: 'Commands without a waiting caller must not delay commands with one: as many of 100,000 as the broker takes, 5,000 of them unconfirmed.',
    start: (target) => attackBy(target.publisher, (client) => client.flood(100_000, () => commandOf(target))),
  },
  {
    name: 'malformed messages',
    why: '262 bodies of 1 MiB that are not JSON, more than a queue of letters holds; then small ones, 500 a second.',
    start: (target) =>
      attackBy(target.publisher, async (client) => {
        await client.flood(FILLS, () => rubbish(MEBIBYTE));
        await client.flood(Infinity, () => rubbish(1), 500);
      }),
  },
  {
    name: '100,000 small malformed messages',
    seconds: 10,
    why: 'Dead-letter queues also limit the number of messages: as many of 100,000 as the broker takes.',
    start: (target) => attackBy(target.publisher, (client) => client.flood(100_000, () => rubbish(10))),
  },
  {
    name: 'refusals to the address of nobody',
    seconds: 10,
    why: 'A refusal is a reply and leaves no letter. When its queue is not there the broker returns it, and the writer sends it again: as many as the broker takes.',
    start: (target) =>
      attackBy(target.publisher, (client) =>
        client.flood(Infinity, () => [ADD, Buffer.from('not JSON'), { replyTo: 'amq.gen-nobody', correlationId: unique() }]),
      ),
  },
  {
    name: 'oversized messages',
    why: 'The broker reads a body of 60 MiB before it refuses it and closes the channel: 12 bodies, each on a new connection.',
    start: (target) =>
      attackBy(target.publisher, async (client) => {
        for (let number = 0; number < 12; number++) {
          await client.publish(...rubbish(60 * MEBIBYTE));
          await client.reopened;
        }
      }),
  },
  {
    name: `messages of ${LARGEST / MEBIBYTE} MiB`,
    seconds: 10,
    why: 'The largest that the broker takes, 1 GiB every 4 s. The services refuse them, but a consumer is sent as many as its prefetch.',
    start: (target) =>
      attackBy(target.publisher, async (client) => {
        const [key, body, options] = rubbish(LARGEST);
        for (;;) {
          const next = pause(BURST_MS);
          await client.flood(BURST, () => [key, body, options], Infinity, UNCONFIRMED_LARGE);
          await next;
        }
      }),
  },
  {
    name: 'poisonous messages',
    why: 'Two messages that crash the process that reads them, like a bug in native code.',
    start: (target) =>
      attackBy(target.publisher, async (client) => {
        for (let number = 0; number < 2; number++)
          await client.publish(...commandOf(target, { displayBodyMessage: 'the poison pill' }));
      }),
  },
  {
    name: 'an expiration flood behind a backlog',
    why: 'The broker removes expired messages itself, without our consumers.',
    start: (target) =>
      attackBy(target.publisher, async (client) => {
        await client.flood(20_000, () => commandOf(target));
        const large = { notificationSourceData: { text: 'x'.repeat(60_000) } };
        await client.flood(5000, () => commandOf(target, large, { expiration: '1' }));
        await client.flood(20_000, () => commandOf(target, {}, { expiration: '1' }));
      }),
  },
  {
    name: 'a full queue of dead letters',
    why: 'An operator fills the queue in place of our own failures; then a publisher sends messages that become refused letters.',
    prepare: fillDeadLetters,
    start: (target) => attackBy(target.publisher, (client) => client.flood(Infinity, () => rubbish(1), 200)),
  },
  {
    name: 'failing messages beside a full queue of dead letters',
    seconds: 10,
    why: 'A publisher that has found a bug: after eight attempts, here 0.1 s apart, its messages become letters of our own failures, and find no room.',
    prepare: fillDeadLetters,
    async start(target) {
      const client = await attackBy(target.publisher, (publisher) =>
        publisher.flood(Infinity, () => commandOf(target, { displayBodyMessage: 'the failing text' }), 20),
      );
      return { stop: async () => `${client.stop()}, at least ${await makeRoom(target)} of them letters when there was room` };
    },
  },
  {
    name: 'commands for ever new API keys',
    seconds: 10,
    why: 'Each key costs a question to the users service, which also checks credentials.',
    start: (target) =>
      attackBy(target.publisher, (client) =>
        client.flood(Infinity, () => commandOf(target, {}, { headers: { 'x-api-key': unique() } }), 2000),
      ),
  },
  {
    name: 'large headers',
    seconds: 10,
    why: 'Headers are published again with every retry and dead letter, and queue limits count bodies but not headers. This client can write 64 KiB.',
    start: (target) =>
      attackBy(target.publisher, (client) => {
        const headers = { 'x-api-key': target.victims[0], 'x-large': 'x'.repeat(65_000) };
        return client.flood(Infinity, () => commandOf(target, {}, { headers }), 300);
      }),
  },
  {
    name: 'copies to other queues by CC',
    seconds: 10,
    why: 'CC bypasses the topic permission: in lane 0, which has all operations, a publisher of notifications reaches four queues of both services.',
    start: (target) =>
      attackBy(target.publisherOfLaneZero, (client) => {
        const headers = {
          'x-api-key': target.tenant['x-svc-api-key'],
          CC: ['users.authenticate.v1', 'users.add.v1', 'notifications.get.v1'],
        };
        return client.flood(Infinity, () => commandOf(target, {}, { headers }), 1500);
      }),
  },
  {
    name: 'commands with 1,000 recipients at full speed',
    seconds: 10,
    why: 'The same statement as over HTTP, without its rate limit and without a waiting caller.',
    start: (target) =>
      attackBy(target.publisher, (client) => {
        const notifyUsers = Array.from({ length: 1000 }, (_, number) => ({ userId: `user ${number}` }));
        return client.flood(2000, () => commandOf(target, { notifyUsers }));
      }),
  },
];
