import { once } from 'node:events';
import type { Server } from 'node:http';
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
