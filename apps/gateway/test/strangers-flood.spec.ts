import { once } from 'node:events';
import type { Socket } from 'node:net';
import { eventually } from '@app/testing/eventually';
import { MOST_STRANGERS_WAITING } from '../src/admission/refuse-unread';
import { CREDENTIALS, RunningGateway } from './running-gateway';
import { BODY } from './sent-calls';

const CONNECTIONS = 100;
/** As many as one connection may begin without an answer. */
const EACH = 8;
const HEADERS = { host: 'gateway', ...CREDENTIALS, 'content-type': 'application/json', 'content-length': BODY.length };
const HEAD = Object.entries(HEADERS).map(([name, value]) => `${name}: ${value}\r\n`);
const KNOWN = `POST /v1/users/add HTTP/1.1\r\n${HEAD.join('')}\r\n${BODY}`;

describe('a flood of requests without known credentials', () => {
  let gateway: RunningGateway;
  beforeEach(async () => (gateway = await RunningGateway.start()));
  afterEach(() => gateway.stop());

  it.each([
    ['files of the documentation', 'GET /openapi.json HTTP/1.1\r\nhost: gateway\r\n\r\n', 200],
    ['health checks', 'GET /health/ready HTTP/1.1\r\nhost: gateway\r\n\r\n', 200],
    ['unknown paths beside them', 'GET /health/other HTTP/1.1\r\nhost: gateway\r\n\r\n', 404],
    ['calls with wrong credentials', 'POST /v1/users/get HTTP/1.1\r\nhost: gateway\r\ncontent-length: 2\r\n\r\n{}', 401],
  ])('%s: a known caller is answered before most of them', async (_, request, status) => {
    const known = await gateway.connect();
    const call = async () => {
      known.write(KNOWN);
      const [bytes] = (await once(known, 'data')) as [Buffer];
      expect(bytes.toString()).toContain('HTTP/1.1 200');
    };
    await call();
    let answered = 0;
    const sockets = await Promise.all(Array.from({ length: CONNECTIONS }, () => gateway.connect()));
    // One connection is accepted in one iteration of the event loop.
    await eventually(async () => (await gateway.metric('gateway_connections')) === 1 + CONNECTIONS);
    for (const socket of sockets) {
      socket.setEncoding('latin1').on('data', (text: string) => (answered += text.split(`HTTP/1.1 ${status}`).length - 1));
      socket.write(request.repeat(EACH));
    }
    await call();
    expect(answered).toBeLessThan((CONNECTIONS * EACH) / 2);
    await eventually(() => answered === CONNECTIONS * EACH);
    await Promise.all([known, ...sockets].map((socket) => once(socket.destroy(), 'close')));
  });

  it('closes connections when their requests take too much memory, and answers health checks and known callers', async () => {
    await gateway.stop();
    gateway = await RunningGateway.start({ limits: { maxOwedBytes: 1024 * 1024 } });
    const closed = () => gateway.metric('gateway_connections_closed_total', { reason: 'memory' });
    const before = (await closed()) ?? 0;
    const known = await gateway.connect();
    const checker = await gateway.connect();
    const sockets = await Promise.all(Array.from({ length: 2 * CONNECTIONS }, () => gateway.connect()));
    await eventually(async () => (await gateway.metric('gateway_connections')) === 2 + sockets.length);
    const check = 'GET /health/live HTTP/1.1\r\nhost: gateway\r\n\r\n';
    for (const socket of sockets) socket.write(check.replace('host', `x-padding: ${'x'.repeat(1000)}\r\nhost`).repeat(EACH));
    known.write(KNOWN);
    checker.write(check);
    const answers = (await Promise.all([once(known, 'data'), once(checker, 'data')])) as Buffer[][];
    for (const [bytes] of answers) expect(bytes.toString()).toContain('HTTP/1.1 200');
    // Most of them: 1 MiB has room for some 260 of the 1,600 requests.
    await eventually(async () => ((await closed()) ?? 0) - before > sockets.length / 2);
    const open = [known, checker, ...sockets].filter((socket) => !socket.closed);
    await Promise.all(open.map((socket) => once(socket.destroy(), 'close')));
  });

  it('refuses with 429, in one log line, what is more than may wait', async () => {
    const connections = Math.ceil(MOST_STRANGERS_WAITING / EACH) + 50;
    const sockets = await Promise.all(Array.from({ length: connections }, () => gateway.connect()));
    await eventually(async () => (await gateway.metric('gateway_connections')) === connections);
    const refused = Promise.race(sockets.map((socket) => onceRefused(socket)));
    for (const socket of sockets) socket.write('GET /openapi.json HTTP/1.1\r\nhost: gateway\r\n\r\n'.repeat(EACH));
    await refused;
    expect(await gateway.log.line({ limit: 'strangers' })).toMatchObject({ msg: 'calls were refused' });
    await Promise.all(sockets.map((socket) => once(socket.destroy(), 'close')));
  });
});

/** Resolves with the first answer 429. */
const onceRefused = (socket: Socket) =>
  new Promise<void>((resolve) => {
    socket.setEncoding('latin1').on('data', (text: string) => text.includes('HTTP/1.1 429') && resolve());
  });
