import { once } from 'node:events';
import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import { eventually } from '@app/testing/eventually';
import { SERVER_LIMITS } from '../src/server/server-limits';
import { UnprovedConnections } from '../src/server/unproved-connections';
import { RunningGateway, textOf, responsesIn } from './running-gateway';
import { BODY, CALL, head } from './sent-calls';

describe('bytes that do not become a request', () => {
  let gateway: RunningGateway;
  let impatient: RunningGateway;
  beforeAll(async () => {
    gateway = await RunningGateway.start();
    // Time for the headers on a busy machine.
    impatient = await RunningGateway.start({ limits: { headersTimeoutMs: 1000, requestTimeoutMs: 1000, checkEveryMs: 20 } });
  });
  afterAll(async () => {
    await gateway.stop();
    await impatient.stop();
  });

  const expectRefused = async (status: number, ...parts: string[]) => {
    const responses = await (status === 408 ? impatient : gateway).raw(...parts);
    expect(responses).toHaveLength(1);
    const [received] = responses;
    expect(received.status).toBe(status);
    expect(received.json().error).toEqual({ status: 'INVALID_ARGUMENT', message: expect.stringMatching(/\.$/) });
    expect(received.headers).toMatchObject({ 'content-type': 'application/json; charset=utf-8', connection: 'close' });
    return received.headers['x-request-id'];
  };

  it('are answered 408 when the body does not come, with the request id of the caller', async () => {
    expect(await expectRefused(408, head(100, 'x-request-id: slow\r\n'), '{')).toBe('slow');
    expect(impatient.rabbit.calls).toEqual([]);
    expect(await impatient.log.line({ requestId: 'slow', status: 408 })).toMatchObject({ msg: 'refused' });
  });

  it('are answered 408 when the headers do not come', async () => {
    expect(await expectRefused(408, 'POST /v1/users/add HTTP/1.1\r\nhost: x\r\n')).toHaveLength(36);
  });

  it('are answered 431 when the headers are too large', async () => {
    await expectRefused(431, `POST /v1/users/add HTTP/1.1\r\nhost: x\r\nx-padding: ${'x'.repeat(17_000)}\r\n\r\n`);
  });

  it('are answered 431 when the path is too long, or the headers are too many', async () => {
    await expectRefused(431, `POST /${'x'.repeat(17_000)} HTTP/1.1\r\nhost: x\r\n\r\n`);
    await expectRefused(431, `POST /v1/users/add HTTP/1.1\r\nhost: x\r\n${'a: b\r\n'.repeat(9000)}\r\n`);
  });

  it('are answered 400 when they are not HTTP', async () => {
    await expectRefused(400, 'BREW /coffee HTTP/1.1\r\n\r\n');
    await expectRefused(400, 'post /v1/users/add HTTP/1.1\r\nhost: x\r\n\r\n');
    await expectRefused(400, head(1, 'content-length: 2\r\n'));
    await expectRefused(400, head(1, 'transfer-encoding: chunked\r\n'));
    await expectRefused(400, `${head(0).replace('content-length: 0', 'transfer-encoding: chunked')}xyz\r\n`);
  });

  it.each(['GET / HTTP/1.2\r\nhost: x\r\n\r\n', 'GET / HTTP/3.0\r\n\r\n', 'GET /\r\n\r\n', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'])(
    'are answered 400 with the right versions: %j',
    async (bytes) => {
      const [received] = await gateway.raw(bytes);
      expect(received.json().error).toEqual({
        status: 'INVALID_ARGUMENT',
        message: 'The version of HTTP must be 1.0 or 1.1.',
      });
    },
  );

  it('are counted as errors without a route, but not the end of a connection that was never used', async () => {
    const counted = () => gateway.metric('gateway_errors_total', { route: 'unknown', error: 'INVALID_ARGUMENT' });
    const before = await counted();
    await expectRefused(400, 'BREW /coffee HTTP/1.1\r\n\r\n');
    await expectRefused(408, 'POST /v1/users/add HTTP/1.1\r\nhost: x\r\n');
    await gateway.raw('CONNECT x:1 HTTP/1.1\r\nhost: x\r\n\r\n');
    await textOf(await impatient.connect());
    expect((await counted()) - before).toBe(3);
  });

  it.each([
    ['are counted as no error when their client has gone', 'resetAndDestroy', 0],
    ['are counted as one error when their client may still read the answer', 'destroy', 1],
  ] as const)('%s', async (_, end, errors) => {
    const before = await gateway.metric('gateway_errors_total');
    const socket = await gateway.connect();
    socket.write(head(BODY.length, `x-request-id: ${end}\r\nexpect: 100-continue\r\n`));
    await once(socket, 'data');
    socket[end]();
    await gateway.log.line({ msg: 'request', requestId: end, status: 499 });
    // The request fails after its connection has closed.
    for (let iteration = 0; iteration < 2; iteration++) await new Promise(setImmediate);
    expect(await gateway.metric('gateway_errors_total')).toBe(before + errors);
  });

  it('have proved their key before the body arrives', async () => {
    const left = jest.spyOn(UnprovedConnections.prototype, 'left');
    const socket = await gateway.connect();
    socket.write(head(BODY.length, 'expect: 100-continue\r\n'));
    await once(socket, 'data');
    expect(left).toHaveBeenCalledTimes(1);
    left.mockRestore();
    socket.destroy();
  });

  it('are answered 400 without Host, and expectations are ignored', async () => {
    await expectRefused(400, 'POST /v1/users/add HTTP/1.1\r\nconnection: close\r\n\r\n');
    const [received] = await gateway.raw(head(BODY.length, 'expect: a miracle\r\nconnection: close\r\n') + BODY);
    expect(received.status).toBe(200);
  });

  it('after a request do not take its answer away', async () => {
    const { started, finish } = gateway.rabbit.hold();
    const socket = await gateway.connect();
    const text = textOf(socket);
    socket.write(`${CALL}NOT HTTP\r\n\r\n`);
    await started;
    finish();
    expect(responsesIn(await text).map(({ status }) => status)).toEqual([200]);
  });

  it('after several requests take no answer away, not even behind one that has not arrived whole', async () => {
    for (const rest of ['NOT HTTP\r\n\r\n', `${head(0).replace('content-length: 0', 'transfer-encoding: chunked')}xyz\r\n`]) {
      const { started, finish } = gateway.rabbit.hold(3);
      const socket = await gateway.connect();
      const text = textOf(socket);
      socket.write(`${CALL.repeat(3)}${rest}`);
      await started;
      finish();
      expect(responsesIn(await text).map(({ status }) => status)).toEqual([200, 200, 200]);
    }
  });

  it('after a request are not read any further', async () => {
    const { started, finish } = gateway.rabbit.hold();
    const server: Server = gateway.app.getHttpServer();
    const [socket, other] = [await gateway.connect(), await gateway.connect()];
    let text = '';
    socket.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
    // Bytes that nobody has read make the end a reset.
    const closed = new Promise((resolve) => socket.once('close', resolve));
    let errors = 0;
    const count = () => errors++;
    server.on('clientError', count);
    socket.write(`${CALL}NOT HTTP\r\n\r\n`);
    await Promise.all([started, once(server, 'clientError')]);
    socket.write('NOT HTTP\r\n\r\n');
    // Bytes that arrived before this request on another connection are read before it, or never.
    other.write('GET /health/live HTTP/1.1\r\nhost: x\r\n\r\n');
    await once(other, 'data');
    expect(errors).toBe(1);
    finish();
    await closed;
    expect(responsesIn(text).map(({ status }) => status)).toEqual([200]);
    server.off('clientError', count);
    other.destroy();
  });
});

describe('connections', () => {
  it('have the limits that are documented', async () => {
    const gateway = await RunningGateway.start();
    expect(gateway.app.getHttpServer()).toMatchObject({
      headersTimeout: 10_000,
      requestTimeout: 15_000,
      // One more than is served: it shows that there were too many.
      maxHeadersCount: 129,
    });
    expect(SERVER_LIMITS).toMatchObject({
      maxConnections: 10_000,
      unreadTimeoutMs: 30_000,
      leastBytesPerSecond: 65_536,
      maxOwed: 8,
    });
    await gateway.stop();
  });

  it('above the limit take the place of an idle one, first of one without a proved key, and are closed unread when all owe answers', async () => {
    const gateway = await RunningGateway.start({ limits: { maxConnections: 3, fewUnproved: 0 } });
    const counts = async () => [
      await gateway.metric('gateway_connections_closed_total', { reason: 'idle' }),
      await gateway.metric('gateway_connections_refused_total'),
    ];
    const [closed = 0, refused = 0] = await counts();
    const proved = await gateway.connect();
    proved.write(CALL);
    await once(proved, 'data');
    const unproved = await openOne(gateway);
    const ends = [unproved, proved].map(textOf);
    const { finish } = gateway.rabbit.hold();
    const atWork: Promise<string>[] = [];
    const call = async (socket: Socket) => {
      const { calls } = gateway.rabbit;
      const before = calls.length;
      atWork.push(textOf(socket));
      socket.write(LAST_CALL);
      await eventually(() => calls.length > before);
    };
    await call(await gateway.connect());
    await call(await gateway.connect());
    expect([await ends[0], ...(await counts())]).toEqual(['', closed + 1, refused]);
    await call(await gateway.connect());
    expect([await ends[1], ...(await counts())]).toEqual(['', closed + 2, refused]);
    expect(await textOf(await gateway.connect())).toBe('');
    expect(await counts()).toEqual([closed + 2, refused + 1]);
    expect(await gateway.log.line({ unread: 0 })).toMatchObject({ address: '127.0.0.1' });
    expect(await gateway.log.line({ msg: 'connections were refused' })).toMatchObject({
      connections: 1,
      open: 3,
      address: '127.0.0.1',
    });
    finish();
    for (const text of await Promise.all(atWork)) expect(responsesIn(text)[0].status).toBe(200);
    expect((await gateway.post('/v1/users/add', BODY)).status).toBe(200);
    await gateway.stop();
  });

  it('without a proved key do not close one another while they are few: those with a proved key that are idle for longest end', async () => {
    const gateway = await RunningGateway.start({ limits: { maxConnections: 3, fewUnproved: 2 } });
    const proved: Socket[] = [];
    for (let count = 0; count < 3; count++) {
      const socket = await gateway.connect();
      socket.write(CALL);
      await once(socket, 'data');
      proved.push(socket);
    }
    const closed = () => gateway.metric('gateway_connections_closed_total', { reason: 'idle' });
    const before = await closed();
    const newcomers = [await gateway.connect(), await gateway.connect()];
    await eventually(async () => (await closed()) === before + 2);
    const kept = [...newcomers, proved[2]];
    const answers = kept.map(textOf);
    for (const socket of kept) socket.write(LAST_CALL);
    for (const text of await Promise.all(answers)) expect(responsesIn(text)[0].status).toBe(200);
    await gateway.stop();
  });

  it('that are idle after an answer, or were never used, are closed', async () => {
    const gateway = await RunningGateway.start({
      config: { keepAliveTimeoutMs: 500 },
      limits: { headersTimeoutMs: 2000, checkEveryMs: 20 },
    });
    const used = await gateway.connect();
    used.write(CALL);
    const [received] = responsesIn(await textOf(used));
    expect([received.status, received.headers.connection]).toEqual([200, 'keep-alive']);
    await textOf(await gateway.connect());
    await gateway.stop();
  });
});

const LAST_CALL = CALL.replace('host: x', 'host: x\r\nconnection: close');

/** A connection that the gateway has accepted. */
async function openOne(gateway: RunningGateway): Promise<Socket> {
  const before = (await gateway.metric('gateway_connections')) ?? 0;
  const socket = await gateway.connect();
  await eventually(async () => (await gateway.metric('gateway_connections')) === before + 1);
  return socket;
}
