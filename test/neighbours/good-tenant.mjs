// The tenant that must not notice its neighbours: adds and gets at a fixed rate whether answers come or not, in a process of its own. A
// child of good-tenant.ts, which sends it Options and gets every answer as it comes.
import { Agent, request } from 'node:http';
import { watchMachine } from '../faults/harness/machine-noise.mjs';
import { pause } from './attacks/calls.mjs';
import { removeUsers } from './removals.mjs';

/** @typedef {{ url: string, headers: object, organizationId: string, documentId: string, addsPerSecond: number, getsPerSecond: number }} Options */
/** @typedef {{ kind: string, perSecond: number, due: number, bodyOf: (number: number) => Record<string, unknown> }} Stream */

const TICK_MS = 5;
const GIVE_UP_MS = 30_000;
const PAGE_SIZE = 50;
const AGAIN_MS = 100;
/** Named by every notification, and a member, whom notifications to all reach too. */
const USER = 'user 0';
/** Calls missed on a busy machine are not made up: all at once they would be another load. */
const MOST_AT_ONCE = 10;

process.once('message', (/** @type {Options} */ options) => void main(options));
process.on('disconnect', () => process.exit(1));

/** @param {Options} options */
async function main({ url, headers, organizationId, documentId, addsPerSecond, getsPerSecond }) {
  const machine = await watchMachine();
  const agent = new Agent({ keepAlive: true, maxSockets: Infinity });
  const open = new Set();
  let asked = 0;
  await store('users', 'users/add', (number) => ({ organizationId, users: [{ userId: USER, name: markOf(number) }] }));
  /** @param {number} number */
  const toAll = (number) => ({ ...newNotification(number), notifyUsers: undefined, notifyAll: true });
  await store('add', 'notifications/add', toAll);
  // Notifications in the other organization are read back at its end only.
  const ofRemovals = `${organizationId}, users removed`;
  await store('other', 'notifications/add', (number) => ({ ...toAll(number), organizationId: ofRemovals }));
  const start = performance.now();
  /** @type {Stream[]} */
  const streams = [
    { kind: 'add', perSecond: addsPerSecond, due: 0, bodyOf: newNotification },
    { kind: 'get', perSecond: getsPerSecond, due: 0, bodyOf: nextFilters },
  ];
  let reads = 0;
  const stopRemovals = removeUsers({
    call: (operation, data) => post(`${url}/v1/${operation}`, headers, JSON.stringify({ data }), agent),
    machine,
    organizationId: ofRemovals,
    report: (removal) => void process.send?.({ removal }),
  });
  const timer = setInterval(() => {
    const now = performance.now();
    for (const stream of streams) {
      // The first one is due at the start.
      const wanted = Math.floor(((now - start) * stream.perSecond) / 1000) + 1;
      for (stream.due = Math.max(stream.due, wanted - MOST_AT_ONCE); stream.due < wanted; stream.due++)
        ask(stream, start + (stream.due * 1000) / stream.perSecond);
    }
  }, TICK_MS);

  process.on('message', (order) => {
    if (order !== 'stop') return;
    clearInterval(timer);
    void Promise.all([...open, stopRemovals()]).then(() => process.send?.({ done: true }, () => process.exit(0)));
  });
  process.send?.({ started: true });

  /** @param {number} number */
  function markOf(number) {
    return `${organizationId} mark ${number}`;
  }

  /** By turns those of a document and those of a user, whose memberships the service has to know because of the notification to all. */
  function nextFilters() {
    return { organizationId, ...(reads++ % 2 ? { userId: USER } : { documentId }), pageSize: PAGE_SIZE };
  }

  /**
   * Stores something before the measurement.
   * @param {string} kind
   * @param {string} operation
   * @param {(number: number) => Record<string, unknown>} bodyOf
   */
  async function store(kind, operation, bodyOf) {
    const number = asked++;
    const data = bodyOf(number);
    const askedAt = Date.now();
    const until = performance.now() + GIVE_UP_MS;
    for (;;) {
      const from = performance.now();
      const { status, id } = await post(`${url}/v1/${operation}`, headers, JSON.stringify({ data }), agent);
      const answer = { status, id, ms: performance.now() - from, noiseMs: 0 };
      if (status === 200) return void process.send?.({ kind, number, askedAt, lateMs: 0, answer, strange: 0, data });
      // Neighbours of the row before may still be there.
      if (performance.now() > until) throw new Error(`${operation} was answered ${status}`);
      await pause(AGAIN_MS);
    }
  }

  /** @param {number} number */
  function newNotification(number) {
    return {
      organizationId,
      documentId,
      notificationId: `n${number}`,
      actionUser: { userId: 'somebody', name: 'Somebody' },
      displayHeadlineMessageTemplate: markOf(number),
      displayBodyMessage: 'Something happened.',
      notifyUsers: [{ userId: USER }],
    };
  }

  /** @param {Stream} options @param {number} dueAt */
  function ask({ kind, bodyOf }, dueAt) {
    const number = asked++;
    const data = bodyOf(number);
    const from = performance.now();
    const askedAt = Date.now();
    const answered = post(`${url}/v1/notifications/${kind}`, headers, JSON.stringify({ data }), agent).then((response) => {
      const until = performance.now();
      const { status, id, retryAfter, text } = response;
      const answer = {
        status,
        id,
        retryAfter,
        ms: until - from,
        noiseMs: machine.between(from, until),
        error: errorOf(response),
      };
      const strange = kind === 'get' && status === 200 ? foreign(text) : 0;
      process.send?.({ kind, number, askedAt, lateMs: from - dueAt, answer, strange, ...(kind === 'add' && { data }) });
    });
    open.add(answered);
    void answered.finally(() => open.delete(answered));
  }

  /**
   * Number of notifications in a page that belong to other tenants.
   * @param {string} text
   */
  function foreign(text) {
    const { data } = JSON.parse(text).result;
    return data.filter(
      (/** @type {{ displayHeadlineMessageTemplate: string }} */ item) =>
        !item.displayHeadlineMessageTemplate.startsWith(`${organizationId} mark `),
    ).length;
  }
}

/** @param {{ status: number, text?: string }} response */
function errorOf({ status, text = 'no answer' }) {
  if (status === 200) return undefined;
  try {
    return String(JSON.parse(text).error.message);
  } catch {
    return text.slice(0, 200);
  }
}

/**
 * @param {string} url
 * @param {object} headers
 * @param {string} body
 * @param {Agent} agent
 * @returns status 0 when there was no answer
 */
function post(url, headers, body, agent) {
  return new Promise((resolve) => {
    const call = request(url, {
      method: 'POST',
      agent,
      timeout: GIVE_UP_MS,
      headers: { ...headers, 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) },
    });
    call.on('timeout', () => call.destroy());
    call.on('error', () => resolve({ status: 0 }));
    call.on('response', (response) => {
      /** @type {Buffer[]} */
      const chunks = [];
      response.on('data', (chunk) => chunks.push(chunk));
      response.on('error', () => resolve({ status: 0 }));
      response.on('end', () =>
        resolve({
          status: response.statusCode,
          id: response.headers['x-notification-id'],
          retryAfter: response.headers['retry-after'],
          text: Buffer.concat(chunks).toString(),
        }),
      );
    });
    call.end(body);
  });
}
