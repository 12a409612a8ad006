import { once } from 'node:events';
import type { Socket } from 'node:net';
import { responsesIn, RunningGateway, textOf, type Received } from './running-gateway';
import { BODY } from './sent-calls';

const CREDENTIALS = 'x-svc-api-key: demo-key\r\nx-svc-auth-token: demo-token\r\n';
const HEAD = `host: x\r\n${CREDENTIALS}content-type: application/json\r\n`;
const LENGTH = `content-length: ${BODY.length}\r\n`;
const CHUNKED = `${BODY.length.toString(16)}\r\n${BODY}\r\n0\r\n\r\n`;

describe('HTTP that two programs may interpret differently', () => {
  let gateway: RunningGateway;
  beforeAll(async () => (gateway = await RunningGateway.start()));
  afterAll(() => gateway.stop());
  beforeEach(() => (gateway.rabbit.calls.length = 0));

  const expectError = ({ status, headers, json }: Received, http: number, error: string) => {
    expect([status, json().error?.status]).toEqual([http, error]);
    expect(Object.keys(json())).toEqual(['error']);
    expect(headers).toMatchObject({ 'content-type': 'application/json; charset=utf-8', connection: 'close' });
    expect(headers['x-request-id']).toBeTruthy();
  };

  it.each([
    ['two Hosts', `POST /v1/users/add HTTP/1.1\r\nHost: y\r\n${HEAD}${LENGTH}\r\n${BODY}`],
    ['two content types', `POST /v1/users/add HTTP/1.1\r\nContent-Type: text/plain\r\n${HEAD}${LENGTH}\r\n${BODY}`],
    ['HTTP/2.0 in its line', `POST /v1/users/add HTTP/2.0\r\n${HEAD}${LENGTH}\r\n${BODY}`],
    ['HTTP/0.9 in its line', `POST /v1/users/add HTTP/0.9\r\n${HEAD}${LENGTH}\r\n${BODY}`],
    ['gzip in its transfer encoding', `POST /v1/users/add HTTP/1.1\r\n${HEAD}transfer-encoding: gzip, chunked\r\n\r\n${CHUNKED}`],
    ['a transfer encoding in HTTP/1.0', `POST /v1/users/add HTTP/1.0\r\n${HEAD}transfer-encoding: chunked\r\n\r\n${CHUNKED}`],
    ['chunked twice', `POST /v1/users/add HTTP/1.1\r\n${HEAD}transfer-encoding: chunked, chunked\r\n\r\n${CHUNKED}`],
    ['two Hosts, where there is nothing', 'GET /nothing HTTP/1.1\r\nhost: x\r\nhost: x\r\n\r\n'],
    ['two Hosts, and a path that cannot be decoded', 'GET /v1/%zz HTTP/1.1\r\nhost: x\r\nhost: x\r\n\r\n'],
  ])('is answered 400 with %s, and the connection ends', async (_, bytes) => {
    const responses = await gateway.raw(bytes);
    expect(responses).toHaveLength(1);
    expectError(responses[0], 400, 'INVALID_ARGUMENT');
    expect(gateway.rabbit.calls).toEqual([]);
  });

  it('lets nothing behind it on the connection be executed', async () => {
    const call = `POST /v1/users/add HTTP/1.1\r\n${HEAD}${LENGTH}\r\n${BODY}`;
    const odd = call.replace('host: x', 'host: x\r\nhost: x');
    const responses = await gateway.raw(call + odd + call.repeat(10));
    expect(responses.map(({ status }) => status)).toEqual([200, 400]);
    expect(gateway.rabbit.calls).toHaveLength(1);
  });

  it.each(['at once', 'never'])(
    'ends the connection when it is refused by a limit and the next request comes %s',
    async (next) => {
      const full = await RunningGateway.start({ config: { maxInFlight: 1 } });
      const { started, finish } = full.rabbit.hold();
      const first = full.post('/v1/users/add', BODY);
      await started;
      const call = `POST /v1/users/add HTTP/1.1\r\n${HEAD}${LENGTH}\r\n${BODY}`;
      const responses = await full.raw(call.replace('host: x', 'host: x\r\nhost: x') + (next === 'never' ? '' : call));
      expect(responses.map(({ status, headers }) => [status, headers.connection])).toEqual([[429, 'close']]);
      finish();
      expect((await first).status).toBe(200);
      await full.stop();
    },
  );

  it('is served with 128 headers, and answered 431 with more, of which Node drops some', async () => {
    // With the length of the body, and without the credentials of the last one.
    const own = HEAD.split('\r\n').length;
    const withHeaders = (count: number, last = '') =>
      gateway.raw(
        `POST /v1/users/add HTTP/1.1\r\nconnection: close\r\n${HEAD}${'a: b\r\n'.repeat(count - own - 1)}${last}${LENGTH}\r\n${BODY}`,
      );
    expect((await withHeaders(128)).map(({ status }) => status)).toEqual([200]);
    for (const [response] of [await withHeaders(129), await withHeaders(3000, CREDENTIALS)])
      expectError(response, 431, 'INVALID_ARGUMENT');
    expect(gateway.rabbit.calls).toHaveLength(1);
  });

  it('is served when it is unambiguous', async () => {
    const close = 'connection: close\r\n';
    for (const bytes of [
      `POST /v1/users/add HTTP/1.0\r\n${HEAD}${LENGTH}\r\n${BODY}`,
      `POST /v1/users/add HTTP/1.0\r\n${HEAD}${LENGTH}expect: 100-continue\r\n\r\n${BODY}`,
      `POST /v1/users/add HTTP/1.1\r\n${HEAD}${close}transfer-encoding: Chunked\r\n\r\n${CHUNKED}`,
    ])
      expect((await gateway.raw(bytes)).map(({ status }) => status)).toEqual([200]);
  });

  it.each([
    ['example.com:443', 405, 'INVALID_ARGUMENT', 'GET, HEAD, POST'],
    ['/v1/users/add', 405, 'INVALID_ARGUMENT', 'POST'],
    ['/docs', 405, 'INVALID_ARGUMENT', 'GET, HEAD'],
    ['/nothing', 404, 'NOT_FOUND', undefined],
  ])('CONNECT %s is answered %i', async (target, http, error, allow) => {
    const [received] = await gateway.raw(`CONNECT ${target} HTTP/1.1\r\nhost: x\r\n\r\n`);
    expectError(received, http, error);
    expect(received.headers.allow).toBe(allow);
  });

  it('CONNECT after a call does not disturb the answer of the call', async () => {
    const { started, finish } = gateway.rabbit.hold();
    const socket = await gateway.connect();
    const text = textOf(socket);
    socket.write(`POST /v1/users/add HTTP/1.1\r\n${HEAD}${LENGTH}\r\n${BODY}CONNECT x:1 HTTP/1.1\r\nhost: x\r\n\r\n`);
    await started;
    finish();
    expect(responsesIn(await text).map(({ status }) => status)).toEqual([200, 405]);
  });

  it('a client that has closed its sending side gets its answers', async () => {
    const { started, finish } = gateway.rabbit.hold(2);
    const server = gateway.app.getHttpServer();
    // Runs after Node's own listener, which decides whether to end the connection.
    server.once('connection', (connection: Socket) => connection.once('end', () => server.emit('half-closed')));
    const socket = await gateway.connect();
    const text = textOf(socket);
    socket.write(`POST /v1/users/add HTTP/1.1\r\n${HEAD}${LENGTH}\r\n${BODY}`.repeat(2));
    await started;
    const ended = new Promise((resolve) => server.once('half-closed', resolve));
    socket.end();
    await ended;
    finish();
    expect(responsesIn(await text).map(({ status }) => status)).toEqual([200, 200]);
  });

  it('a client that expects 100-continue gets it after its credentials are checked', async () => {
    const asking = (headers: string) => `POST /v1/users/add HTTP/1.1\r\n${headers}${LENGTH}expect: 100-continue\r\n\r\n`;
    const [refused] = await gateway.raw(asking(HEAD.replace('demo-token', 'demo-token\r\nx-svc-auth-token: second')));
    expectError(refused, 401, 'UNAUTHENTICATED');

    const socket = await gateway.connect();
    socket.write(asking(HEAD));
    const [go] = (await once(socket, 'data')) as [Buffer];
    expect(go.toString()).toBe('HTTP/1.1 100 Continue\r\n\r\n');
    expect(gateway.rabbit.calls).toEqual([]);
    socket.write(BODY);
    const [text] = (await once(socket, 'data')) as [Buffer];
    expect(responsesIn(text.toString())[0].status).toBe(200);
    socket.destroy();
  });
});
