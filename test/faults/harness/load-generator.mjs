// Adds notifications at the given rate, in its own process: a client in the test process would be the bottleneck.
//   node load-generator.mjs '<JSON>'   see LoadOptions in load.ts
// At the end it writes a journal in the format of Journal: this client is never killed.
import { createWriteStream } from 'node:fs';
import { connect } from 'node:net';
import { finished } from 'node:stream/promises';
import { watchMachine } from './machine-noise.mjs';

const TICK_MS = 2;
const GIVE_UP_MS = 30_000;
/**
 * More than the calls in flight of the gateway. Opened before the load and not all at once, which would be another fault. Each connection has had
 * an answer then, because the kernel connects before the gateway accepts, and a busy gateway accepts one in each turn of its event loop.
 */
const CONNECTIONS = 1500;
const CONNECT_AT_ONCE = 50;
/** Calls missed on a busy machine are not made up: all at once they would be another load. */
const MOST_AT_ONCE = 50;

/** @typedef {import('./load.ts').LoadOptions & { url: string, headers: object, organizationId: string, documentId: string, path: string }} Options */
/** @typedef {{ askedAt: number, from: number, until?: number, status?: number, id?: string, retryAfter?: string }} Ask */

await main(JSON.parse(process.argv[2]));

/** @param {Options} options */
async function main(options) {
  const { url, headers, organizationId, documentId, ratePerSecond, inFlight, ms, path } = options;
  const { hostname, port } = new URL(url);
  const noise = await watchMachine();
  /** @type {Ask[]} */
  const asks = [];
  /**
   * Idle connections. The longest idle one is used next, because an unused connection is closed after 10 s.
   * @type {Line[]}
   */
  const idle = [];
  let open = 0;

  /** @param {string} mark @param {number | string} number */
  const contentOf = (mark, number) => ({
    organizationId,
    documentId,
    notificationId: `n${number}`,
    actionUser: { userId: 'somebody', name: 'Somebody' },
    displayHeadlineMessageTemplate: mark,
    displayBodyMessage: 'Something happened.',
  });
  const [bodyBegins, bodyGoesOn, bodyEnds] = JSON.stringify({ data: contentOf(`${organizationId} mark #`, '#') }).split('#');
  /** @param {number} number */
  const markOf = (number) => `${organizationId} mark ${number}`;
  const head = [
    'POST /v1/notifications/add HTTP/1.1',
    `host: ${hostname}:${port}`,
    'content-type: application/json',
    ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
  ].join('\r\n');

  function send() {
    const line = idle.shift();
    // All connections are in use: skip this call.
    if (!line) return;
    const number = asks.length;
    /** @type {Ask} */
    const ask = { askedAt: Date.now(), from: performance.now() };
    asks.push(ask);
    open++;
    // The body is serialized only once, because this client takes CPU time from the system.
    const body = `${bodyBegins}${number}${bodyGoesOn}${number}${bodyEnds}`;
    line.send(`${head}\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`, (status, answer = '') => {
      open--;
      ask.status = status;
      ask.until = performance.now();
      if (status === 200) ask.id = headerOf(answer, 'x-notification-id');
      else ask.retryAfter = headerOf(answer, 'retry-after');
      idle.push(status > 0 ? line : new Line());
      if (inFlight && performance.now() < end) send();
    });
  }

  /** A persistent connection with one call at a time. */
  class Line {
    text = '';
    /** @type {((status: number, answer?: string) => void) | undefined} */
    answer;
    socket = connect({ host: hostname, port: Number(port), noDelay: true })
      .setEncoding('latin1')
      .setTimeout(GIVE_UP_MS, () => this.socket.destroy())
      .on('data', (text) => this.take(String(text)))
      .on('error', () => {})
      .on('close', () => {
        const at = idle.indexOf(this);
        if (at >= 0) idle[at] = new Line();
        this.answer?.(0);
      });

    /** Called with any answer. */
    accepted() {
      return new Promise((resolve, reject) => {
        /** @param {number} status */
        const answered = (status) => (status > 0 ? resolve(undefined) : reject(new Error('the gateway takes no connection')));
        this.send(`GET / HTTP/1.1\r\nhost: ${hostname}\r\n\r\n`, answered);
      });
    }

    /** @param {string} text @param {(status: number, answer?: string) => void} answer */
    send(text, answer) {
      this.answer = answer;
      this.socket.write(text);
    }

    /** @param {string} text */
    take(text) {
      this.text += text;
      const headEnd = this.text.indexOf('\r\n\r\n');
      if (headEnd < 0) return;
      const length = Number(headerOf(this.text, 'content-length'));
      if (this.text.length < headEnd + 4 + length) return;
      const { text: whole, answer } = this;
      this.text = '';
      this.answer = undefined;
      answer?.(Number(whole.slice(9, 12)), whole);
    }
  }

  while (idle.length < (inFlight ?? CONNECTIONS)) {
    const lines = Array.from({ length: CONNECT_AT_ONCE }, () => new Line());
    await Promise.all(lines.map((line) => line.accepted()));
    idle.push(...lines);
  }
  let due = 0;
  const start = performance.now();
  const end = start + ms;
  if (inFlight) for (let call = 0; call < inFlight; call++) send();
  /** @type {(resolve: () => void) => void} */
  const untilOver = (resolve) => {
    const timer = setInterval(() => {
      const now = performance.now();
      if (ratePerSecond && now < end) {
        const wanted = Math.floor(((now - start) * ratePerSecond) / 1000);
        for (due = Math.max(due, wanted - MOST_AT_ONCE); due < wanted; due++) send();
      }
      if (now < end || open > 0) return;
      clearInterval(timer);
      resolve();
    }, TICK_MS);
  };
  await /** @type {Promise<void>} */ (new Promise(untilOver));

  const file = createWriteStream(path);
  asks.forEach(({ askedAt, from, until, status, id, retryAfter }, number) => {
    const mark = markOf(number);
    // Thousands of calls were refused: their content is not needed.
    const data = status === 429 || status === 503 ? {} : contentOf(mark, number);
    const thing = { kind: 'notification', tenant: options.tenant, mark, data };
    const answer = { status, ms: Number(until) - from, noiseMs: noise.between(from, Number(until)), id, retryAfter };
    file.write(`${JSON.stringify({ ask: number, thing, askedAt, answer })}\n`);
  });
  await finished(file.end());
  process.exit(0);
}

/**
 * Header names as the gateway writes them, in lower case.
 * @param {string} answer
 * @param {string} name
 */
function headerOf(answer, name) {
  const at = answer.indexOf(`\r\n${name}: `);
  return at < 0 ? undefined : answer.slice(at + name.length + 4, answer.indexOf('\r\n', at + 2));
}
