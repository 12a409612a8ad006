// Shared by attackers over HTTP: many calls, counted by their outcome.
import { randomBytes } from 'node:crypto';
import { Agent, request } from 'node:http';

/** @typedef {import('../neighbour-system.ts').Target} Target */
/** @typedef {[operation: string, headers: object, body: string]} Call */

const TICK_MS = 5;
/** Pause after a refusal, which comes at once: without it a closed loop would become a flood of refusals, which is another attack. */
export const AFTER_REFUSAL_MS = 250;

export class Calls {
  /** @type {Record<string, number>} */
  statuses = {};
  asked = 0;
  #url;
  #agent = new Agent({ keepAlive: true, maxSockets: Infinity });
  /** @type {Set<NodeJS.Timeout>} */
  #timers = new Set();
  #stopped = false;
  #since = performance.now();

  /** @param {{ gatewayUrl: string }} options */
  constructor({ gatewayUrl }) {
    this.#url = gatewayUrl;
  }

  /**
   * @param {string} operation
   * @param {object} headers
   * @param {string} body
   * @returns the status of the answer, whose body is read and forgotten; 0 when there was none
   */
  call(operation, headers, body) {
    this.asked++;
    return new Promise((resolve) => {
      /** @param {number} status */
      const answered = (status) => {
        this.statuses[status] = (this.statuses[status] ?? 0) + 1;
        resolve(status);
      };
      const sent = request(`${this.#url}/v1/${operation}`, {
        method: 'POST',
        agent: this.#agent,
        headers: { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body), ...headers },
      });
      sent.on('error', () => answered(0));
      sent.on('response', (response) => {
        response.on('error', () => answered(0));
        response.on('end', () => answered(response.statusCode ?? 0)).resume();
      });
      sent.end(body);
    });
  }

  /**
   * Keeps this number of calls in flight.
   * @param {number} inFlight
   * @param {() => Call} next
   */
  closedLoop(inFlight, next) {
    const again = async () => {
      while (!this.#stopped) if ((await this.call(...next())) !== 200) await pause(AFTER_REFUSAL_MS);
    };
    for (let loop = 0; loop < inFlight; loop++) void again();
    return this;
  }

  /**
   * Sends calls at this rate, with or without answers, but limits the calls in flight.
   * @param {number} perSecond
   * @param {() => Call} next
   * @param {number} [atMost]
   */
  openLoop(perSecond, next, atMost = 1000) {
    const start = performance.now();
    let due = 0;
    let open = 0;
    const timer = setInterval(() => {
      const wanted = Math.floor(((performance.now() - start) * perSecond) / 1000);
      for (; due < wanted; due++) {
        if (open >= atMost) continue;
        open++;
        void this.call(...next()).then(() => open--);
      }
    }, TICK_MS);
    this.#timers.add(timer);
    return this;
  }

  /** Ends all calls, and returns the offered load as text. */
  stop() {
    this.#stopped = true;
    this.#timers.forEach((timer) => clearInterval(timer));
    this.#agent.destroy();
    const seconds = (performance.now() - this.#since) / 1000;
    const statuses = Object.entries(this.statuses).map(
      ([status, count]) => `${count} × ${status === '0' ? 'no answer' : status}`,
    );
    return `${this.asked} calls, ${(this.asked / seconds).toFixed()}/s: ${statuses.join(', ') || 'no answers'}`;
  }
}

/** Several attacks of one row. @param {{ stop(): string }[]} attacks */
export const both = (...attacks) => ({ stop: () => attacks.map((attack) => attack.stop()) });

/** @param {number} ms */
export const pause = (ms) => /** @type {Promise<void>} */ (new Promise((resolve) => setTimeout(resolve, ms)));

/** A name that no other run uses. */
export const unique = () => randomBytes(8).toString('hex');

/** The body of an add in the attacker's name. */
export const notification = (changes = {}) => ({
  organizationId: 'the attacker',
  documentId: 'document',
  actionUser: { userId: 'attacker' },
  displayHeadlineMessageTemplate: 'Something happened.',
  ...changes,
});

/** @param {object} data */
export const bodyOf = (data) => JSON.stringify({ data });

/** Filters of a page of 4 MiB. */
export const HEAVY = { organizationId: 'the attacker', documentId: 'heavy' };
const HEAVY_NOTIFICATIONS = 70;
const HEAVY_BYTES = 63 * 1024;

/**
 * Stores the notifications of the {@link HEAVY} pages, once, because they have ids.
 * @param {Target} target
 */
export const prepareHeavyPages = (target) => storeHeavyPages(target, HEAVY);

/**
 * Stores 4 MiB of notifications that differ in these fields from others.
 * @param {Target} target
 * @param {{ documentId: string, notifyUsers?: object[] }} fields
 */
export async function storeHeavyPages(target, fields) {
  const calls = new Calls(target);
  const adds = Array.from({ length: HEAVY_NOTIFICATIONS }, (_, number) =>
    bodyOf(
      notification({
        ...fields,
        notificationId: `${fields.documentId} ${number}`,
        notificationSourceData: { text: 'x'.repeat(HEAVY_BYTES) },
      }),
    ),
  );
  while (adds.length > 0) await Promise.all(adds.splice(0, 4).map((add) => calls.call('notifications/add', target.tenant, add)));
  const problems = Object.keys(calls.statuses).filter((status) => status !== '200');
  calls.stop();
  if (problems.length > 0) throw new Error(`The heavy pages could not be stored: ${problems}`);
}
