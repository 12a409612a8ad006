import { once } from 'node:events';
import type { Socket } from 'node:net';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { eventually } from '@app/testing/eventually';
import { HEAVIEST_BYTES, MOST_HEAVY_BYTES } from '../src/admission/call-turns';
import { CREDENTIALS, responsesIn, RunningGateway, textOf, type Received } from './running-gateway';
import { BODY, CALL, head, LARGE, OTHER } from './sent-calls';

const FILTERS = { data: { organizationId: 'acme', documentId: 'roadmap' } };
const MEBIBYTE = 1024 * 1024;

/** Bytes of the objects that are there after the work, its result included. */
async function memoryOf(work: () => unknown): Promise<number> {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  const used = async () => {
    // Not once: what ends a request or a connection holds more, and is there until then.
    for (let time = 0; time < 5; time++) {
      await new Promise((resolve) => setImmediate(resolve));
      collect();
    }
    return process.memoryUsage().heapUsed;
  };
  const before = await used();
  const kept = { result: await work() };
  const bytes = (await used()) - before;
  kept.result = undefined;
  return bytes;
}

describe('calls in flight', () => {
  let gateway: RunningGateway;
  beforeEach(async () => (gateway = await RunningGateway.start({ config: { maxInFlight: 2 } })));
  afterEach(() => gateway.stop());

  /** Name, how two waiting calls are sent, and how their client ends. */
  it.each([
    ['on two connections', async () => [await started(CALL), await started(CALL)]],
    ['on one connection, one after the other', async () => [await started(CALL + CALL)]],
  ])('last as long as the work, also when their client aborts: %s', async (_, start) => {
    const held = gateway.rabbit.hold(2);
    const sockets = await start();
    await held.started;
    expect((await gateway.post('/v1/users/add', BODY)).status).toBe(429);
    sockets.forEach((socket) => socket.destroy());
    expect((await gateway.post('/v1/users/add', BODY)).status).toBe(429);
    held.finish();
    await eventually(async () => (await gateway.post('/v1/users/add', BODY)).status === 200);
    // The places are returned only once: two calls find room again, not three.
    const { started: full, finish } = gateway.rabbit.hold(2);
    const calls = [1, 2].map(() => gateway.post('/v1/users/add', BODY));
    await full;
    expect((await gateway.post('/v1/users/add', BODY)).status).toBe(429);
    finish();
    expect((await Promise.all(calls)).map(({ status }) => status)).toEqual([200, 200]);
    await eventually(async () => (await gateway.metric('gateway_calls_in_flight')) === 0);
    await eventually(async () => (await gateway.metric('gateway_waiting_bytes')) === 0);
  });

  it.each(['/v1/users/%61dd', 'http://x/v1/users/add', '/v1/users/add#x', '/v1/users/add?x'])(
    'are counted however their path is written: %s',
    async (path) => {
      const { started: two, finish } = gateway.rabbit.hold(2);
      const calls = [1, 2].map(() => gateway.post(path, BODY));
      await two;
      const inFlight = await gateway.metric('gateway_calls_in_flight');
      finish();
      expect((await Promise.all(calls)).map(({ status }) => status)).toEqual([200, 200]);
      expect(inFlight).toBe(2);
    },
  );

  it('are not occupied by callers whose body is arriving', async () => {
    // The answer 100 shows that the request was accepted.
    const slow = await Promise.all([1, 2, 3].map(() => started(head(100, 'expect: 100-continue\r\n'))));
    await Promise.all(slow.map((socket) => once(socket, 'data')));
    expect((await gateway.post('/v1/users/add', BODY)).status).toBe(200);
    slow.forEach((socket) => socket.destroy());
  });

  it('leave room for small bodies and other keys while the large bodies of one key use its share', async () => {
    const slow = await Promise.all(Array.from({ length: 104 }, () => started(head(MEBIBYTE))));
    await eventually(async () => (await gateway.metric('gateway_arriving_bytes')) === 103 * MEBIBYTE);
    expect((await gateway.post('/v1/users/add', LARGE)).status).toBe(429);
    expect((await gateway.post('/v1/users/add', LARGE, OTHER)).status).toBe(200);
    expect((await gateway.post('/v1/users/add', BODY)).status).toBe(200);
    expect(await gateway.log.line({ limit: 'arriving_share' })).toMatchObject({ apiKey: 'demo-key' });
    slow.forEach((socket) => socket.destroy());
    await eventually(async () => (await gateway.metric('gateway_arriving_bytes')) === 0);
    expect((await gateway.post('/v1/users/add', LARGE)).status).toBe(200);
    expect(await gateway.metric('gateway_arriving_bytes')).toBe(0);
  });

  it('leave room for other keys and for large bodies while the small bodies of one key use their share', async () => {
    await gateway.stop();
    gateway = await RunningGateway.start({ limits: { maxSmallBytesArriving: 20 * 10_000 } });
    const small = BODY.padEnd(10_000);
    const slow = await Promise.all(Array.from({ length: 20 }, () => started(head(10_000, 'expect: 100-continue\r\n'))));
    const answers = await Promise.all(slow.map(async (socket) => String((await once(socket, 'data'))[0])));
    expect(answers.filter((text) => text.startsWith('HTTP/1.1 429'))).toHaveLength(4);
    expect((await gateway.post('/v1/users/add', small)).status).toBe(429);
    expect(await gateway.log.line({ limit: 'arriving_share' })).toMatchObject({ apiKey: 'demo-key' });
    expect((await gateway.post('/v1/users/add', small, OTHER)).status).toBe(200);
    expect((await gateway.post('/v1/users/add', LARGE)).status).toBe(200);
    expect((await gateway.post('/v1/users/add', BODY)).status).toBe(200);
    slow.forEach((socket) => socket.destroy());
    await eventually(async () => (await gateway.post('/v1/users/add', small)).status === 200);
  });

  it('count their large bodies until they are answered', async () => {
    const { started: one, finish } = gateway.rabbit.hold();
    const call = gateway.post('/v1/users/add', LARGE);
    await one;
    expect(await gateway.metric('gateway_arriving_bytes')).toBe(LARGE.length);
    finish();
    await call;
    await eventually(async () => (await gateway.metric('gateway_arriving_bytes')) === 0);
  });

  it('have large bodies without a turn: 429 beside others of their key, 503 when only other keys have the turns', async () => {
    await gateway.stop();
    // Time for the calls at work to begin on a busy machine.
    gateway = await RunningGateway.start({ config: { requestTimeoutMs: 3000 } });
    gateway.rabbit.keys.add('third-key');
    const limited = () => gateway.metric('gateway_rate_limited_total', { limit: 'arriving_share' });
    const before = await limited();
    const { started: all, finish } = gateway.rabbit.hold(16);
    const body = BODY.padEnd(MEBIBYTE);
    const of = (apiKey: string) => gateway.post('/v1/users/add', body, { 'x-svc-api-key': apiKey });
    // As many as one key, and then all, may have at work.
    const atWork = [...Array<string>(12).fill('demo-key'), ...Array<string>(4).fill('other-key')].map(of);
    await all;
    const [own, foreign] = await Promise.all([of('demo-key'), of('third-key')]);
    expect([own, foreign].map(({ status, headers, json }) => [status, headers['retry-after'], json().error?.status])).toEqual([
      [429, '1', 'RESOURCE_EXHAUSTED'],
      [503, '1', 'UNAVAILABLE'],
    ]);
    expect(own.json().error?.message).toBe('Too many calls of this API key at the moment: others have their share, too.');
    expect(await limited()).toBe(before + 1);
    expect(await gateway.log.line({ limit: 'arriving_share' })).toMatchObject({ apiKey: 'demo-key', calls: 1 });
    finish();
    await Promise.all(atWork);
  });

  it('keep no parsed body while they are at work, nor while they wait for their turn', async () => {
    await gateway.stop();
    gateway = await RunningGateway.start();
    const calls = 100;
    // Each object takes as much memory as 20 bytes of text.
    const junk = Array.from({ length: 5000 }, () => '{}').join();
    const body = `{"data":{"organizationId":"acme","users":[{"userId":"ada"}]},"junk":[${junk}]}`;
    // Not of one: what the gateway before leaves is as large, and may be freed meanwhile.
    const parsedBytes = await memoryOf(() => Array.from({ length: calls }, () => JSON.parse(body) as unknown));
    const atWork = Math.ceil((MOST_HEAVY_BYTES * 3) / 4 / HEAVIEST_BYTES);
    const { started: all, finish } = gateway.rabbit.hold(atWork);
    let answers: Promise<Received[]> | undefined;
    const keptBytes = await memoryOf(async () => {
      answers = Promise.all(Array.from({ length: calls }, () => gateway.post('/v1/users/add', body)));
      await all;
      await eventually(async () => (await gateway.metric('gateway_calls_waiting')) === calls - atWork);
    });
    finish();
    expect((await answers!).map(({ status }) => status)).toEqual(Array.from({ length: calls }, () => 200));
    expect(keptBytes).toBeLessThan(parsedBytes / 4);
  });

  it('are refused unread when all places are taken', async () => {
    const { started: two, finish } = gateway.rabbit.hold(2);
    const calls = [1, 2].map(() => gateway.post('/v1/users/add', BODY));
    await two;
    const late = await gateway.connect();
    late.write('POST /v1/users/add HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n');
    const [refused] = responsesIn(await textOf(late));
    finish();
    await Promise.all(calls);
    // Not 401, because the credentials were not checked.
    expect([refused.status, refused.headers['retry-after'], refused.json().error?.status]).toEqual([
      429,
      '1',
      'RESOURCE_EXHAUSTED',
    ]);
    const requestId = refused.headers['x-request-id'];
    expect(requestId).toHaveLength(36);
    expect(await gateway.log.line({ msg: 'calls were refused' })).toMatchObject({ limit: 'in_flight', requestIds: [requestId] });
  });

  async function started(bytes: string): Promise<Socket> {
    const socket = await gateway.connect();
    socket.write(bytes);
    return socket;
  }
});

describe('places of one key', () => {
  let gateway: RunningGateway;
  beforeEach(async () => (gateway = await RunningGateway.start({ config: { maxInFlight: 100 } })));
  afterEach(() => gateway.stop());

  it('are four fifths of the places of a kind: another key and another kind find room at once', async () => {
    // The last places are for keys that were answered first.
    await gateway.post('/v1/users/add', BODY, OTHER);
    const held = gateway.rabbit.hold(48);
    const calls = Array.from({ length: 60 }, () => gateway.post('/v1/users/add', BODY));
    const refused = await firstOf(calls, 12);
    for (const { status, headers, json } of refused)
      expect([status, headers['retry-after'], json().error]).toEqual([
        429,
        '1',
        { status: 'RESOURCE_EXHAUSTED', message: 'Too many calls of this API key at the moment: others have their share, too.' },
      ]);
    await held.started;
    expect(await gateway.metric('gateway_calls_in_flight', { kind: 'users.commands' })).toBe(48);
    const others = gateway.rabbit.hold(11);
    const more = Array.from({ length: 10 }, () => gateway.post('/v1/users/add', BODY, OTHER));
    more.push(gateway.post('/v1/notifications/get', FILTERS));
    await others.started;
    held.finish();
    others.finish();
    const all = await Promise.all([...calls, ...more]);
    expect(all.filter(({ status }) => status === 200)).toHaveLength(48 + 11);
    expect(await gateway.log.line({ limit: 'in_flight_share' })).toMatchObject({
      apiKey: 'demo-key',
      hint: expect.stringContaining('MAX_IN_FLIGHT'),
    });
  });

  it('are not shown to a caller with wrong credentials', async () => {
    const held = gateway.rabbit.hold(48);
    const calls = Array.from({ length: 48 }, () => gateway.post('/v1/users/add', BODY));
    await held.started;
    expect((await gateway.post('/v1/users/add', BODY)).status).toBe(429);
    gateway.rabbit.verdict = 'refused';
    expect((await gateway.post('/v1/users/add', BODY, { ...CREDENTIALS, 'x-svc-auth-token': 'wrong' })).status).toBe(401);
    held.finish();
    await Promise.all(calls);
  });

  /** Waits until `count` promises have settled. @returns their values */
  async function firstOf<T>(promises: Promise<T>[], count: number): Promise<T[]> {
    const settled: T[] = [];
    promises.forEach((promise) => void promise.then((value) => settled.push(value)));
    await eventually(() => settled.length >= count);
    return settled;
  }
});
