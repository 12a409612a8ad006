import { once } from 'node:events';
import type { Socket } from 'node:net';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { eventually } from '@app/testing/eventually';
import { HEAVIEST_BYTES, MOST_BESIDE_SETTLED, MOST_HEAVY_BYTES } from '../src/admission/call-turns';
import { UNAVAILABLE } from './stub-rabbit';
import { CREDENTIALS, responsesIn, RunningGateway, textOf, type Received } from './running-gateway';

const BODY = '{"data":{"organizationId":"acme","users":[{"userId":"ada"}]}}';
const FILTERS = { data: { organizationId: 'acme', documentId: 'roadmap' } };
const OTHER = { 'x-svc-api-key': 'other-key' };
const head = (length: number, more = '') =>
  `POST /v1/users/add HTTP/1.1\r\nhost: x\r\nx-svc-api-key: demo-key\r\nx-svc-auth-token: demo-token\r\ncontent-type: application/json\r\ncontent-length: ${length}\r\n${more}\r\n`;
const CALL = head(BODY.length) + BODY;
const MEBIBYTE = 1024 * 1024;
/** A body above the size that is not counted. */
const LARGE = BODY.padEnd(16 * 1024 + 1);

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
    gateway = await RunningGateway.start({ config: { requestTimeoutMs: 1000 } });
    gateway.rabbit.keys.add('third-key');
    const limited = async () => (await gateway.metric('gateway_rate_limited_total', { limit: 'arriving_share' })) ?? 0;
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
    const parsedBytes = await memoryOf(() => JSON.parse(body) as unknown);
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
    expect(keptBytes).toBeLessThan((calls / 4) * parsedBytes);
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

describe('calls of a new key beside a call of a key that has been answered for some time', () => {
  let gateway: RunningGateway;
  let held: { started: Promise<void>; finish: () => void };
  /** The other key's call, and as many of the new key as may be at work. */
  let atWork: Promise<Received>[];
  const waiting = () => gateway.metric('gateway_calls_waiting');
  const callNew = (count: number) => Array.from({ length: count }, () => gateway.post('/v1/users/add', BODY));
  const start = async (requestTimeoutMs: number) => {
    gateway = await RunningGateway.start({ config: { requestTimeoutMs } });
    await gateway.post('/v1/users/add', BODY, OTHER);
    const settled = gateway.rabbit.hold();
    atWork = [gateway.post('/v1/users/add', BODY, OTHER)];
    await settled.started;
    const few = gateway.rabbit.hold(MOST_BESIDE_SETTLED);
    held = { ...few, finish: () => [settled, few].forEach(({ finish }) => finish()) };
    atWork.push(...callNew(MOST_BESIDE_SETTLED));
    await held.started;
  };
  afterEach(() => gateway.stop());

  it('begin a few at a time, and the other key does not wait behind the rest', async () => {
    await start(5000);
    atWork.push(...callNew(20));
    await eventually(async () => (await waiting()) === 20);
    const since = performance.now();
    const next = gateway.rabbit.hold();
    const call = gateway.post('/v1/users/add', BODY, OTHER);
    await next.started;
    next.finish();
    expect((await call).status).toBe(200);
    await eventually(() => performance.now() - since > 100);
    const waited = performance.now() - since;
    held.finish();
    expect((await Promise.all(atWork)).map(({ status }) => status)).toEqual(atWork.map(() => 200));
    expect([await waiting(), await gateway.metric('gateway_calls_in_flight')]).toEqual([0, 0]);
    // Their wait is a part of the time for their answer.
    const timeouts = gateway.rabbit.calls.slice(-20).map(({ options }) => options.timeoutMs);
    expect(Math.max(...timeouts)).toBeLessThanOrEqual(5000 - waited);
  });

  it('are answered without a turn when their time is over, and no other call has it instead', async () => {
    await start(500);
    gateway.rabbit.respond = ({ options }) => {
      // As RabbitClient does.
      if (options.timeoutMs < 1) throw UNAVAILABLE;
      throw new Error('It had a turn.');
    };
    const [late] = callNew(1);
    await eventually(async () => (await waiting()) === 1);
    const [next] = callNew(1);
    expect([await late, await next].map(({ status }) => status)).toEqual([503, 503]);
    expect([await waiting(), await gateway.metric('gateway_calls_in_flight')]).toEqual([0, atWork.length]);
    held.finish();
    expect((await Promise.all(atWork)).map(({ status }) => status)).toEqual(atWork.map(() => 200));
  });
});

describe('heavy commands of one key', () => {
  const MOST_OF_KEY = (3 / 4) * (MOST_HEAVY_BYTES / HEAVIEST_BYTES);
  const HEAVY = BODY.padEnd(HEAVIEST_BYTES);
  const DELETION = { data: { organizationId: 'acme', documentId: 'roadmap' } };
  let gateway: RunningGateway;
  let held: { started: Promise<void>; finish: () => void };
  let atWork: Promise<Received>[];
  const waiting = () => gateway.metric('gateway_calls_waiting');
  const call = (count: number, path = '/v1/users/add', body: unknown = HEAVY, headers = {}) =>
    Array.from({ length: count }, () => gateway.post(path, body, headers));

  /** As many as may be at work. */
  beforeEach(async () => {
    gateway = await RunningGateway.start();
    held = gateway.rabbit.hold(MOST_OF_KEY);
    atWork = call(MOST_OF_KEY);
    await held.started;
  });
  afterEach(() => {
    held.finish();
    return gateway.stop();
  });

  it.each([
    ['by its declared size', {}],
    ['by its size', { 'transfer-encoding': 'chunked' }],
  ])('begin a few at a time, %s, and light ones and those of other keys do not wait behind the rest', async (_, headers) => {
    const rest = call(20, undefined, undefined, headers);
    await eventually(async () => (await waiting()) === 20);
    const others = [...call(1, undefined, BODY), ...call(1, undefined, HEAVY, OTHER)];
    await eventually(() => gateway.rabbit.calls.length === atWork.length + others.length);
    expect(await waiting()).toBe(20);
    held.finish();
    const answers = await Promise.all([...atWork, ...rest, ...others]);
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200));
    expect(await waiting()).toBe(0);
  });

  it('are those that change many rows, too', async () => {
    const calls = call(40, '/v1/notifications/delete', DELETION);
    await eventually(async () => (await waiting()) === 40 - MOST_OF_KEY);
    expect(gateway.rabbit.calls).toHaveLength(atWork.length + MOST_OF_KEY);
    held.finish();
    await Promise.all([...atWork, ...calls]);
  });

  it('are given up at once when their client leaves, and return what they hold', async () => {
    const held0 = await holdings();
    const left = await gateway.connect();
    left.write(head(LARGE.length) + LARGE);
    await eventually(async () => (await waiting()) === 1);
    expect(await holdings()).toEqual({ places: atWork.length + 1, bodies: LARGE.length, answers: held0.answers! + 1024 });
    // A client that only ends its side still waits for the answer.
    left.resetAndDestroy();
    await eventually(async () => (await waiting()) === 0);
    expect(await holdings()).toEqual(held0);
    held.finish();
    await Promise.all(atWork);
    await eventually(async () => (await gateway.metric('gateway_waiting_bytes')) === 0);
    expect([await holdings(), gateway.rabbit.calls.length]).toEqual([{ places: 0, bodies: 0, answers: 0 }, atWork.length]);
  });

  const holdings = async () => ({
    places: await gateway.metric('gateway_calls_in_flight'),
    bodies: await gateway.metric('gateway_arriving_bytes'),
    answers: await gateway.metric('gateway_waiting_bytes'),
  });
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
