// Services that listen to events, and clients that only connect.
import { connect } from 'amqplib';
import { Calls, bodyOf, both, notification, pause } from './calls.mjs';

/** @typedef {import('../neighbour-system.ts').Target} Target */
/** @typedef {Target['listener']} Account */

const EVENT = 'notification.added.v1';

/** Repeats an action at the broker until the attack is stopped, and counts refusals. */
class AtBroker {
  done = 0;
  refused = 0;
  problem = '';
  stopped = false;
  /** @type {Set<import('amqplib').ChannelModel>} */
  models = new Set();

  /** @param {string} what @param {(attack: AtBroker) => Promise<unknown>} work */
  constructor(what, work) {
    this.what = what;
    void work(this).catch((error) => this.refuse(error));
  }

  /** @param {string} url */
  async connect(url) {
    const model = await connect(url, { timeout: 5000 });
    model.on('error', () => {});
    model.on('close', () => this.models.delete(model));
    this.models.add(model);
    return model;
  }

  /** @param {string} url */
  async channel(url) {
    const channel = await (await this.connect(url)).createChannel();
    channel.on('error', (error) => this.refuse(error));
    return channel;
  }

  /** @param {Error} options */
  refuse({ message }) {
    this.refused++;
    this.problem ||= message.slice(0, 120);
  }

  stop() {
    this.stopped = true;
    this.models.forEach((model) => model.close().catch(() => {}));
    const { what, done, refused, problem } = this;
    return `${done} ${what}${refused ? `, ${refused} refused (${problem})` : ''}`;
  }
}

/**
 * Connects as fast as possible, with a limited number at a time.
 * @param {AtBroker} attack
 * @param {string} url
 * @param {number} count
 * @param {number} atOnce
 * @param {(model: import('amqplib').ChannelModel) => unknown} [then]
 */
const connectAll = (attack, url, count, atOnce, then) =>
  Promise.all(
    Array.from({ length: atOnce }, async () => {
      while (!attack.stopped && attack.done + attack.refused < count) {
        try {
          const model = await attack.connect(url);
          attack.done++;
          await then?.(model);
        } catch (error) {
          attack.refuse(error);
          await pause(100);
        }
      }
    }),
  );

/**
 * Calls that publish an event each, to fill event queues.
 * @param {Target} target
 */
const fill = (target) => {
  const body = bodyOf(notification({ notificationSourceData: { text: 'x'.repeat(60_000) } }));
  return new Calls(target).openLoop(60, () => ['notifications/add', target.tenant, body]);
};

/** @param {Account} options */
const stuckQueue = ({ name, url }) =>
  new AtBroker('queues', async (attack) => {
    const channel = await attack.channel(url);
    await channel.assertQueue(`${name}.stuck`, { arguments: { 'x-max-length': 1, 'x-overflow': 'reject-publish' } });
    await channel.bindQueue(`${name}.stuck`, 'events', EVENT);
    attack.done++;
  });

/** @type {import('./all.mjs').Attack[]} */
export const LISTENERS = [
  {
    name: 'a stuck listener',
    why: 'A queue for one message that rejects others and is never consumed: every confirm depends on it.',
    start: ({ oldListener, listener }) => both(stuckQueue(oldListener), stuckQueue(listener)),
  },
  {
    name: 'a listener that never consumes',
    why: 'An unlimited queue uses memory and disk of the broker, and the alarm stops every publisher; 60 events of 60 KB a second.',
    start: (target) =>
      both(
        new AtBroker('queues', async (attack) => {
          const { name, url } = target.oldListener;
          const channel = await attack.channel(url);
          for (const type of ['classic', 'quorum']) {
            await channel.assertQueue(`${name}.${type}`, { arguments: { 'x-queue-type': type } });
            await channel.bindQueue(`${name}.${type}`, 'events', EVENT);
            attack.done++;
          }
        }),
        fill(target),
      ),
  },
  {
    name: 'a thousand queues of one listener',
    seconds: 10,
    why: 'Every event is copied to each of them: as many of a thousand as four channels can declare and bind.',
    start: ({ oldListener: { name, url } }) =>
      new AtBroker('queues', async (attack) => {
        let number = 0;
        const declare = async () => {
          const channel = await attack.channel(url);
          while (number < 1000 && !attack.stopped) {
            const queue = `${name}.${number++}`;
            await channel.assertQueue(queue);
            await channel.bindQueue(queue, 'events', EVENT);
            attack.done++;
          }
        };
        await Promise.all(Array.from({ length: 4 }, declare));
      }),
  },
  {
    name: 'bindings made and undone',
    seconds: 10,
    why: 'Bindings are rows in a table that all publishers read. Each binding has other arguments.',
    start: ({ oldListener: { name, url } }) =>
      new AtBroker('bindings', async (attack) => {
        const channel = await attack.channel(url);
        await channel.assertQueue(`${name}.bound`, { arguments: { 'x-max-length': 10 } });
        while (!attack.stopped) {
          const batch = Array.from({ length: 50 }, (_, number) => ({ number: attack.done + number }));
          await Promise.all(batch.map((one) => channel.bindQueue(`${name}.bound`, 'events', EVENT, one)));
          attack.done += batch.length;
          if (attack.done % 10_000 === 0) await channel.deleteQueue(`${name}.bound`);
          if (attack.done % 10_000 === 0) await channel.assertQueue(`${name}.bound`, { arguments: { 'x-max-length': 10 } });
        }
      }),
  },
  {
    name: 'events that become commands',
    seconds: 10,
    why: 'A listener’s own queue may dead-letter into commands with any routing key, and events have the user_id of a service.',
    start: (target) =>
      both(
        new AtBroker('queues', async (attack) => {
          const { name, url } = target.oldBoth;
          const channel = await attack.channel(url);
          for (const operation of ['users.add.v1', 'documents.set.v1', 'notifications.add.v1', 'users.authenticate.v1']) {
            const arguments_ = {
              'x-message-ttl': 0,
              'x-dead-letter-exchange': 'commands',
              'x-dead-letter-routing-key': operation,
            };
            await channel.assertQueue(`${name}.${operation}`, { arguments: arguments_ });
            await channel.bindQueue(`${name}.${operation}`, 'events', EVENT);
            attack.done++;
          }
        }),
        fill(target),
      ),
  },
  {
    name: '2,000 connections of one account',
    why: 'Each connection needs processes and memory in the broker. An account may have 50, and 20 attempts at a time go on.',
    start: ({ publisher: { url } }) => new AtBroker('connections', (attack) => connectAll(attack, url, 2000, 20)),
  },
  {
    name: 'connections made and ended',
    seconds: 10,
    why: 'The broker hashes a password for each connection, and reports every end to all nodes.',
    start: ({ publisher: { url } }) =>
      new AtBroker('connections', (attack) => connectAll(attack, url, Infinity, 8, (model) => model.close())),
  },
  {
    name: 'wrong passwords at the broker',
    seconds: 10,
    why: 'An attempt to log in needs no account.',
    start({ publisher }) {
      const url = new URL(publisher.url);
      url.password = 'wrong';
      return new AtBroker('connections', (attack) => connectAll(attack, url.href, Infinity, 16));
    },
  },
  {
    name: 'a listener that acknowledges nothing',
    seconds: 10,
    why: 'Unacknowledged events stay in the broker, and are delivered again with each new connection.',
    start: (target) =>
      both(
        new AtBroker('deliveries', async (attack) => {
          const { name, url } = target.oldListener;
          const channel = await attack.channel(url);
          const queue = `${name}.slow`;
          await channel.assertQueue(queue, { arguments: { 'x-queue-type': 'quorum' } });
          await channel.bindQueue(queue, 'events', EVENT);
          while (!attack.stopped) {
            const { consumerTag } = await channel.consume(queue, () => attack.done++);
            await pause(1000);
            await channel.cancel(consumerTag);
            await channel.recover();
          }
        }),
        fill(target),
      ),
  },
];
