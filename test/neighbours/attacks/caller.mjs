// Services that may call and wait: they have reply queues, which the broker names.
import { connect } from 'amqplib';
import { attackBy } from './broker-client.mjs';
import { HEAVY, pause, prepareHeavyPages, unique } from './calls.mjs';
import { ADD } from './publisher.mjs';

/** @typedef {import('../neighbour-system.ts').Target} Target */

const GET = 'notifications.get.v1';

/** @param {Target} target @param {object} data @param {string} replyTo @returns {import('./broker-client.mjs').Message} */
const queryOf = ({ tenant }, data, replyTo) => [
  GET,
  Buffer.from(JSON.stringify(data)),
  { replyTo, correlationId: unique(), headers: { 'x-api-key': tenant['x-svc-api-key'] } },
];

/** @param {import('./broker-client.mjs').BrokerClient} options */
const replyQueue = async ({ channel }) => {
  const { queue } = await channel.assertQueue('', { exclusive: true });
  await channel.bindQueue(queue, 'replies', queue);
  return queue;
};

/** @type {import('./all.mjs').Attack[]} */
export const CALLERS = [
  {
    name: 'direct queries at once',
    seconds: 10,
    why: 'Queries have a queue too: 2,000 a second, more than are answered. It holds 10,000, and refuses the others.',
    start: (target) =>
      attackBy(target.caller, async (client) => {
        const queue = await replyQueue(client);
        await client.channel.consume(queue, () => {}, { noAck: true });
        await client.flood(Infinity, () => queryOf(target, { organizationId: 'the attacker', userId: 'user 1' }, queue), 2000);
      }),
  },
  {
    name: 'replies that nobody reads',
    seconds: 10,
    why: 'Pages of 4 MiB that stay in the reply queue of their caller use the memory of the broker.',
    prepare: prepareHeavyPages,
    start: (target) =>
      attackBy(target.caller, async (client) => {
        const queue = await replyQueue(client);
        await client.flood(Infinity, () => queryOf(target, { ...HEAVY, pageSize: 1000 }, queue), 25);
      }),
  },
  {
    name: 'awaited direct commands',
    seconds: 10,
    why: 'A direct caller is not limited by the gateway: 2,000 commands a second with a deadline and a reply queue.',
    start: (target) =>
      attackBy(target.caller, async (client) => {
        const queue = await replyQueue(client);
        await client.channel.consume(queue, () => {}, { noAck: true });
        const body = Buffer.from(
          JSON.stringify({
            organizationId: 'the attacker',
            documentId: 'document',
            actionUser: { userId: 'attacker' },
            displayHeadlineMessageTemplate: 'x',
          }),
        );
        const headers = () => ({ 'x-api-key': target.tenant['x-svc-api-key'], 'x-deadline': Date.now() + 5000 });
        await client.flood(
          Infinity,
          () => [ADD, body, { replyTo: queue, correlationId: unique(), messageId: unique(), headers: headers() }],
          2000,
        );
      }),
  },
  {
    name: 'queues for replies by the thousand',
    seconds: 10,
    why: 'Queues named by the broker are not limited by permissions: as many of 5,000 as one channel can declare one after the other.',
    async start({ caller }) {
      const model = await connect(caller.url);
      model.on('error', () => {});
      let declared = 0;
      let problem = '';
      void (async () => {
        const channel = await model.createChannel();
        channel.on('error', () => {});
        for (; declared < 5000; declared++) {
          const { queue } = await channel.assertQueue('', { exclusive: true });
          await channel.bindQueue(queue, 'replies', queue);
        }
      })().catch((error) => (problem = `, then: ${error.message}`));
      return {
        stop() {
          model.close().catch(() => {});
          return `${declared} queues${problem}`;
        },
      };
    },
  },
  {
    name: 'channels by the thousand',
    seconds: 10,
    why: 'Each channel needs processes in the broker. An account may have 500, and 101 more are refused.',
    async start({ caller }) {
      let [opened, refused] = [0, 0];
      /** @type {import('amqplib').ChannelModel[]} */
      const models = [];
      void (async () => {
        for (let connection = 0; connection < 10; connection++) {
          const model = await connect(caller.url);
          model.on('error', () => {});
          models.push(model);
          for (let channel = 0; channel < 2000; channel++) {
            await model.createChannel().then(
              (one) => {
                one.on('error', () => {});
                opened++;
              },
              () => refused++,
            );
            if (refused > 100) return;
          }
        }
      })().catch(() => refused++);
      return {
        async stop() {
          await pause(0);
          models.forEach((model) => model.close().catch(() => {}));
          return `${opened} channels, ${refused} refused`;
        },
      };
    },
  },
];
