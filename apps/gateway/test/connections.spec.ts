import { once } from 'node:events';
import type { Socket } from 'node:net';
import { eventually } from '@app/testing/eventually';
import { SERVER_LIMITS } from '../src/server/server-limits';
import { RunningGateway, textOf, responsesIn } from './running-gateway';
import { BODY, CALL } from './sent-calls';

describe('connections', () => {
  it('have the limits that are documented', async () => {
    const gateway = await RunningGateway.start();
    expect(gateway.app.getHttpServer()).toMatchObject({
      headersTimeout: 10_000,
      requestTimeout: 15_000,
      keepAliveTimeout: 125_000,
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
