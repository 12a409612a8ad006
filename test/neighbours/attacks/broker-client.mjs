// Shared by attackers at the broker: one connection that reconnects when the broker ends it, with counters.
import { connect, IllegalOperationError } from 'amqplib';
import { pause } from './calls.mjs';

/** @typedef {{ name?: string, url: string, exchange?: string }} Account */
/** @typedef {[routingKey: string, body: Buffer, options: import('amqplib').Options.Publish]} Message */

const AGAIN_MS = 1000;
/** Most unconfirmed messages: more would only fill the attacker's own memory. */
const UNCONFIRMED = 5000;
const TICK_MS = 10;

export class BrokerClient {
  published = 0;
  confirmed = 0;
  refused = 0;
  closed = 0;
  /** Resolves when a channel that the broker has closed is open again. */
  reopened = Promise.resolve();
  /** Publishers that wait for the outcome of their message. */
  #waiting = /** @type {Set<() => void>} */ (new Set());
  #stopped = false;
  /** @type {import('amqplib').ChannelModel | undefined} */
  #model;
  /** @type {import('amqplib').ConfirmChannel | undefined} */
  #channel;

  /** @param {Account} account */
  constructor(account) {
    this.account = account;
  }

  /** @param {Account} account */
  static async open(account) {
    const client = new BrokerClient(account);
    await client.#connect();
    return client;
  }

  get channel() {
    if (!this.#channel) throw new Error('the client is not open');
    return this.#channel;
  }

  async #connect() {
    this.#model = await connect(this.account.url);
    this.#model.on('error', () => {});
    this.#channel = await this.#model.createConfirmChannel();
    this.#channel.on('error', () => {});
    this.#channel.on('close', () => (this.reopened = this.#again()));
  }

  /** Opens a new channel when the broker has closed the old one. */
  async #again() {
    if (this.#stopped) return;
    this.closed++;
    this.#waiting.forEach((resolve) => resolve());
    this.#waiting.clear();
    this.#model?.close().catch(() => {});
    await pause(AGAIN_MS);
    if (!this.#stopped) await this.#connect().catch(() => this.#again());
  }

  /**
   * Resolves when the broker has confirmed or refused the message, or the channel is closed.
   * @param {string} routingKey
   * @param {Buffer} body
   * @param {import('amqplib').Options.Publish} [options]
   * @param {string} [exchange]
   */
  publish(routingKey, body, options = {}, exchange = this.account.exchange ?? '') {
    this.published++;
    /** @type {(settle: () => void) => void} */
    const work = (resolve) => {
      /** @param {unknown} error */
      const done = (error) => {
        if (error) this.refused++;
        else this.confirmed++;
        this.#waiting.delete(resolve);
        resolve();
      };
      this.#waiting.add(resolve);
      try {
        this.channel.publish(exchange, routingKey, body, { userId: this.account.name, ...options }, done);
      } catch (error) {
        // Anything else would be an attack that never leaves this process.
        if (!(error instanceof IllegalOperationError)) throw error;
        // The channel is closed or is being reopened.
        this.#waiting.delete(resolve);
        resolve();
      }
    };
    return /** @type {Promise<void>} */ (new Promise(work));
  }

  /**
   * Publishes `count` messages, at the given rate or as fast as possible.
   * @param {number} count
   * @param {(sent: number) => Message} next
   */
  async flood(count, next, perSecond = Infinity, unconfirmed = UNCONFIRMED) {
    const start = performance.now();
    for (let sent = 0; sent < count && !this.#stopped;) {
      const due = Math.min(count, ((performance.now() - start) * perSecond) / 1000);
      for (; sent < due && this.#waiting.size < unconfirmed; sent++) void this.publish(...next(sent));
      await pause(TICK_MS);
    }
  }

  stop() {
    this.#stopped = true;
    this.#model?.close().catch(() => {});
    const { published, confirmed, refused, closed } = this;
    return `${published} messages, ${confirmed} confirmed, ${refused} refused${closed ? `, channel closed ${closed} times` : ''}`;
  }
}

/**
 * An attack with one connection. It runs until it is stopped or has sent everything.
 * @param {Account} account
 * @param {(client: BrokerClient) => unknown} attack
 */
export const attackBy = async (account, attack) => {
  const client = await BrokerClient.open(account);
  void attack(client);
  return client;
};
