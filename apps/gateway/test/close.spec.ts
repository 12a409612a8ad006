import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { eventually } from '@app/testing/eventually';
import { Connections } from '../src/server/connections';
import { RunningGateway, responsesIn, textOf } from './running-gateway';
import { CALL, head, LARGE } from './sent-calls';

/** A connection that owes the answers to two calls at work. */
async function owingTwo(gateway: RunningGateway) {
  const { started, finish } = gateway.rabbit.hold(2);
  const socket = await gateway.connect();
  const answers = textOf(socket);
  socket.write(CALL.repeat(2));
  await started;
  return { socket, answers, finish };
}

describe('close', () => {
  afterEach(() => jest.restoreAllMocks());

  it('finishes running requests, and does not wait for idle connections', async () => {
    const gateway = await RunningGateway.start();
    const idle = await gateway.connect();
    idle.write(CALL);
    await once(idle, 'data');
    const neverUsed = await gateway.connect();
    const { started, finish } = gateway.rabbit.hold();
    const running = await gateway.connect();
    const answers = textOf(running);
    running.write(CALL);
    await started;

    gateway.readiness.draining = true;
    let isClosed = false;
    const closed = gateway.stop().then(() => (isClosed = true));
    await Promise.all([once(idle.resume(), 'close'), once(neverUsed.resume(), 'close')]);
    expect(isClosed).toBe(false);
    finish();
    const [received] = responsesIn(await answers);
    expect([received.status, received.headers.connection]).toEqual([200, 'close']);
    await closed;
  });

  it('answers a call that is on its way to an idle connection, as the last one there', async () => {
    const gateway = await RunningGateway.start({ limits: { lastCallMs: 60_000 } });
    const used = await gateway.connect();
    used.write(CALL);
    await once(used, 'data');
    const sockets = [used, await gateway.connect()];
    const closed = gateway.stop();
    await eventually(() => !gateway.app.getHttpServer().listening);
    const answers = sockets.map(textOf);
    for (const socket of sockets) socket.write(CALL);
    for (const text of await Promise.all(answers))
      expect(responsesIn(text).map(({ status, headers }) => [status, headers.connection])).toEqual([[200, 'close']]);
    await closed;
  });

  it('sends all answers that a connection owes, and the last of them ends it', async () => {
    const gateway = await RunningGateway.start({ config: { maxInFlight: 3 } });
    const { socket, answers, finish } = await owingTwo(gateway);
    const closed = gateway.stop();
    await eventually(() => gateway.readiness.draining);
    // Both arrive while the server closes, and the call finds no place.
    const refused = () => gateway.metric('gateway_rate_limited_total');
    const before = await refused();
    socket.write(`GET /health/live HTTP/1.1\r\nhost: x\r\n\r\n${CALL}`);
    await eventually(async () => (await refused()) === before + 1);
    finish();
    const responses = responsesIn(await answers);
    expect(responses.map(({ status }) => status)).toEqual([200, 200, 200, 429]);
    expect(responses.map(({ headers }) => headers.connection)).toEqual([...Array<string>(3).fill('keep-alive'), 'close']);
    await closed;
  });

  it('begins no request behind an answer that says that the connection ends', async () => {
    const gateway = await RunningGateway.start();
    const { started, finish } = gateway.rabbit.hold();
    const responses: ServerResponse[] = [];
    gateway.app.getHttpServer().on('request', (_: unknown, response: ServerResponse) => responses.push(response));
    const socket = await gateway.connect();
    const answers = textOf(socket);
    socket.write(CALL);
    await started;
    gateway.readiness.draining = true;
    // Its answer waits for that of the call.
    socket.write('GET /health/live HTTP/1.1\r\nhost: x\r\n\r\n');
    await eventually(() => responses[1]?.writableEnded);
    socket.write(CALL);
    await eventually(() => responses.length === 3);
    finish();
    expect(responsesIn(await answers).map(({ headers }) => headers.connection)).toEqual(['keep-alive', 'close']);
    expect(gateway.rabbit.calls).toHaveLength(1);
    await gateway.stop();
  });

  it('sends all answers that a connection owes when nothing more may arrive, and begins nothing more', async () => {
    const gateway = await RunningGateway.start({ limits: { lastArrivalMs: 0 } });
    const isOver = jest.spyOn(Connections.prototype, 'closeSlow');
    const { socket, answers, finish } = await owingTwo(gateway);
    const closed = gateway.stop();
    await eventually(() => isOver.mock.calls.length > 0);
    const arrived = once(gateway.app.getHttpServer(), 'request');
    socket.write(CALL);
    await arrived;
    finish();
    expect(responsesIn(await answers).map(({ status }) => status)).toEqual([200, 200]);
    expect(gateway.rabbit.calls).toHaveLength(2);
    await closed;
  });

  it('cuts off a request whose rest does not arrive', async () => {
    const gateway = await RunningGateway.start({ limits: { lastArrivalMs: 50 } });
    const socket = await gateway.connect();
    socket.write(head(100, 'expect: 100-continue\r\n'));
    await once(socket, 'data');
    await Promise.all([once(socket, 'close'), gateway.stop()]);
  });

  it('serves a request that has partly arrived', async () => {
    const gateway = await RunningGateway.start();
    const socket = await gateway.connect();
    const answers = textOf(socket);
    const call = head(LARGE.length) + LARGE;
    socket.write(call.slice(0, -5));
    await eventually(async () => (await gateway.metric('gateway_arriving_bytes')) === LARGE.length);
    const closed = gateway.stop();
    socket.write(call.slice(-5));
    const [received] = responsesIn(await answers);
    expect([received.status, received.headers.connection]).toEqual([200, 'close']);
    await closed;
  });
});
