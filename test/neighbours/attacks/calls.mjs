// What attackers that speak HTTP share: calls by the hundred, counted by what became of them.
import { randomBytes } from 'node:crypto';
import { Agent, request } from 'node:http';

/** @typedef {import('../neighbour-system.ts').Target} Target */
/** @typedef {[operation: string, headers: object, body: string]} Call */

const TICK_MS = 5;
/** A refusal comes at once: without a pause a closed loop would become a flood of refusals, which is an attack of its own. */
const AFTER_REFUSAL_MS = 250;

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
   * Keeps a number of calls under way.
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
   * So many a second, whether answers come or not, but never more than so many at a time.
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

  /** Ends all of it, and says what was offered. */
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

/** @param {number} ms */
export const pause = (ms) => /** @type {Promise<void>} */ (new Promise((resolve) => setTimeout(resolve, ms)));

/** What no other run uses. */
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

/** A page of it is 4 MiB. */
export const HEAVY = { organizationId: 'the attacker', documentId: 'heavy' };
const HEAVY_NOTIFICATIONS = 70;
const HEAVY_BYTES = 63 * 1024;

/**
 * Stores what {@link HEAVY} pages are made of, once: they have ids.
 * @param {Target} target
 */
export async function prepareHeavyPages(target) {
  const calls = new Calls(target);
  const adds = Array.from({ length: HEAVY_NOTIFICATIONS }, (_, number) =>
    bodyOf(
      notification({ ...HEAVY, notificationId: `heavy ${number}`, notificationSourceData: { text: 'x'.repeat(HEAVY_BYTES) } }),
    ),
  );
  while (adds.length > 0) await Promise.all(adds.splice(0, 4).map((add) => calls.call('notifications/add', target.tenant, add)));
  const problems = Object.keys(calls.statuses).filter((status) => status !== '200');
  calls.stop();
  if (problems.length > 0) throw new Error(`The heavy pages could not be stored: ${problems}`);
}
