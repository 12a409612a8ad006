import { once } from 'node:events';
import type { IncomingMessage, Server } from 'node:http';
import type { Socket } from 'node:net';
import { eventually } from '@app/testing/eventually';
import { RunningGateway, responsesIn, textOf } from './running-gateway';
import { answer } from './stub-rabbit';

const BODY = '{"data":{"organizationId":"acme","documentId":"roadmap"}}';
const get = (id: string | number, more = '') =>
  `POST /v1/notifications/get HTTP/1.1\r\nhost: x\r\nx-svc-api-key: demo-key\r\nx-svc-auth-token: demo-token\r\nx-request-id: ${id}\r\n${more}content-type: application/json\r\ncontent-length: ${BODY.length}\r\n\r\n${BODY}`;
const OTHER = { 'x-svc-api-key': 'other-key' };
const MEBIBYTE = 1024 * 1024;
const page = (bytes: number) => answer({ page: 'x'.repeat(bytes) });
/** More than the socket buffers hold for a client that does not read. */
const LARGE = 16 * MEBIBYTE;
/** One for all calls: each of its own would take most of the time. */
const LARGE_PAGE = page(LARGE);

describe('answers that are not read', () => {
  let gateway: RunningGateway;
  const closed = (reason: string) => gateway.metric('gateway_connections_closed_total', { reason });
  afterEach(() => gateway.stop());

  async function unread(bytes: string): Promise<Socket> {
    const socket = await gateway.connect();
    socket.pause();
    socket.write(bytes);
    return socket;
  }

  it('occupy no place in flight, are limited for each connection, and end the connection', async () => {
    gateway = await RunningGateway.start({
      config: { maxInFlight: 20 },
      limits: { unreadTimeoutMs: 3000, checkEveryMs: 20, maxBytesWaiting: 1024 * MEBIBYTE },
    });
    gateway.rabbit.respond = () => LARGE_PAGE;
    const before = await closed('unread');
    const socket = await unread(Array.from({ length: 100 }, (_, id) => get(id)).join(''));
    await eventually(async () => (await gateway.metric('gateway_waiting_bytes')) > 8 * LARGE);
    expect(gateway.rabbit.calls).toHaveLength(8);
    expect(await gateway.metric('gateway_calls_in_flight')).toBe(0);
    gateway.rabbit.respond = () => page(1);
    expect((await gateway.post('/v1/notifications/get', BODY)).status).toBe(200);
    await eventually(async () => (await closed('unread')) === before + 1);
    await eventually(async () => (await gateway.metric('gateway_waiting_bytes')) === 0);
    expect(await gateway.log.line({ connections: 1 })).toMatchObject({
      level: 40,
      unread: 1,
      pipelined: 0,
      address: '127.0.0.1',
    });
    socket.destroy();
  });

  it('end a connection without credentials as well', async () => {
    gateway = await RunningGateway.start({ limits: { unreadTimeoutMs: 100, checkEveryMs: 20 } });
    const before = await closed('unread');
    const script = 'GET /docs/swagger-ui-bundle.js HTTP/1.1\r\nhost: x\r\n\r\n';
    const socket = await unread(script.repeat(100));
    await eventually(async () => (await closed('unread')) === before + 1);
    await eventually(async () => (await gateway.metric('gateway_waiting_bytes')) === 0);
    socket.destroy();
  });

  it('end a connection that Node has given up for CONNECT', async () => {
    gateway = await RunningGateway.start({ limits: { unreadTimeoutMs: 100, checkEveryMs: 20 } });
    // Earlier answers would fill the buffers as well, but for a few bytes.
    const server: Server = gateway.app.getHttpServer();
    server.prependListener('connect', (request: IncomingMessage) => request.socket.write(Buffer.alloc(LARGE)));
    const before = await closed('unread');
    const socket = await unread('CONNECT x:1 HTTP/1.1\r\nhost: x\r\n\r\n');
    await eventually(async () => (await closed('unread')) === before + 1);
    socket.destroy();
  });

  it('are limited for each key: other keys get their answers', async () => {
    gateway = await RunningGateway.start({ limits: { maxBytesWaiting: 10 * LARGE } });
    gateway.rabbit.respond = () => LARGE_PAGE;
    const sockets = await Promise.all(Array.from({ length: 20 }, (_, id) => unread(get(id))));
    expect(await gateway.log.line({ limit: 'waiting_share' })).toMatchObject({ apiKey: 'demo-key' });
    await eventually(async () => (await gateway.metric('gateway_calls_in_flight')) === 0);
    expect(await gateway.metric('gateway_waiting_bytes')).toBeLessThan(9 * LARGE);
    const refused = await gateway.post('/v1/notifications/get', BODY);
    expect([refused.status, refused.headers['retry-after'], refused.json().error?.status]).toEqual([
      429,
      '1',
      'RESOURCE_EXHAUSTED',
    ]);
    expect((await gateway.post('/v1/notifications/get', BODY, OTHER)).text.length).toBeGreaterThan(LARGE);
    expect((await gateway.send({ method: 'GET', path: '/docs/swagger-ui-bundle.js' })).status).toBe(200);
    sockets.forEach((socket) => socket.destroy());
    await eventually(async () => (await gateway.metric('gateway_waiting_bytes')) === 0);
  });

  it('of the documentation keep it away from others, but no calls, and are refused before Fastify', async () => {
    gateway = await RunningGateway.start({ limits: { maxBytesWaiting: 64 * MEBIBYTE } });
    const documentation = () => gateway.send({ method: 'GET', path: '/openapi.json' });
    expect((await documentation()).status).toBe(200);
    const scripts = 'GET /docs/swagger-ui-bundle.js HTTP/1.1\r\nhost: x\r\n\r\n'.repeat(8);
    const sockets = await Promise.all(Array.from({ length: 8 }, () => unread(scripts)));
    expect(await gateway.log.line({ msg: 'calls were refused' })).toMatchObject({ limit: 'strangers' });
    expect([(await documentation()).status, (await documentation()).status]).toEqual([429, 429]);
    expect(await gateway.metric('gateway_waiting_bytes')).toBeLessThan(10 * MEBIBYTE);
    expect((await gateway.send({ method: 'GET', path: '/health/ready' })).status).toBe(200);
    expect((await gateway.post('/v1/notifications/get', BODY)).status).toBe(200);
    // Only Fastify writes a line for a request.
    expect(gateway.log.lines.filter(({ route }) => route === '/openapi.json')).toHaveLength(1);
    sockets.forEach((socket) => socket.destroy());
    await eventually(async () => (await gateway.metric('gateway_waiting_bytes')) === 0);
    expect((await documentation()).status).toBe(200);
  });

  it('of the documentation are limited, and health is still answered', async () => {
    gateway = await RunningGateway.start({ limits: { maxBytesWaiting: MEBIBYTE } });
    const refused = await gateway.send({ method: 'GET', path: '/docs/swagger-ui-bundle.js' });
    expect([refused.status, refused.headers['retry-after'], refused.json().error?.status]).toEqual([
      429,
      '1',
      'RESOURCE_EXHAUSTED',
    ]);
    // Caches would keep the refusal for as long as the file.
    expect(refused.headers['cache-control']).toBeUndefined();
    expect((await gateway.send({ method: 'GET', path: '/health/ready' })).status).toBe(200);
  });
});

describe('requests that are sent without waiting', () => {
  let gateway: RunningGateway;
  afterEach(() => gateway.stop());

  it('are answered in order, even when there are many', async () => {
    gateway = await RunningGateway.start();
    let running = 0;
    let most = 0;
    gateway.rabbit.respond = async () => {
      most = Math.max(most, ++running);
      await new Promise((resolve) => setImmediate(resolve));
      running--;
      return page(1000);
    };
    const socket = await gateway.connect();
    const text = textOf(socket);
    const ids = Array.from({ length: 1000 }, (_, id) => String(id));
    socket.write(ids.map((id) => get(id)).join('') + get('last', 'connection: close\r\n'));
    const responses = responsesIn(await text);
    expect(responses.map(({ headers }) => headers['x-request-id'])).toEqual([...ids, 'last']);
    expect(new Set(responses.map(({ status }) => status))).toEqual(new Set([200]));
    expect(most).toBeLessThanOrEqual(8);
    // Node reads about 64 KiB at a time.
    expect(await gateway.metric('gateway_connections_closed_total', { reason: 'pipelined' })).toBe(0);
  });

  it('are not read while many responses are owed, and end the connection when all connections have sent too many', async () => {
    gateway = await RunningGateway.start({ limits: { maxQueued: 50 } });
    const closed = () => gateway.metric('gateway_connections_closed_total', { reason: 'pipelined' });
    const before = await closed();
    const { started, finish } = gateway.rabbit.hold(8);
    const socket = await gateway.connect();
    const text = textOf(socket);
    socket.write(Array.from({ length: 8 }, (_, id) => get(id)).join(''));
    await started;
    socket.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n'.repeat(200));
    expect(await text).toBe('');
    expect(await closed()).toBe(before + 1);
    expect(await gateway.log.line({ connections: 1 })).toMatchObject({ unread: 0, pipelined: 1, address: '127.0.0.1' });
    finish();
    const another = await gateway.connect();
    another.write(get(1));
    await once(another, 'data');
    another.destroy();
  });

  it('end the connection with the most of them, not the one that sends one more', async () => {
    gateway = await RunningGateway.start({ limits: { maxQueued: 50 } });
    const { started, finish } = gateway.rabbit.hold(16);
    const [many, few] = [await gateway.connect(), await gateway.connect()];
    const texts = [textOf(many), textOf(few)];
    const eight = Array.from({ length: 8 }, (_, id) => get(id)).join('');
    many.write(eight);
    few.write(eight);
    await started;
    many.write(get('queued').repeat(48));
    // Nothing tells that these wait: the connection is no longer read.
    await eventually(() => many.bytesWritten > 0 && many.writableLength === 0);
    few.write(get('few').repeat(9) + get('last', 'connection: close\r\n'));
    expect(await texts[0]).toBe('');
    finish();
    expect(responsesIn(await texts[1]).map(({ status }) => status)).toEqual(Array.from({ length: 18 }, () => 200));
  });
});
