import { eventually } from '@app/testing/eventually';
import { HEAVIEST_BYTES, MOST_LIGHT_BESIDE, MOST_HEAVY_BYTES } from '../src/admission/call-turns';
import { RunningGateway, type Received } from './running-gateway';
import { BODY, head, LARGE, OTHER } from './sent-calls';
import { UNAVAILABLE } from './stub-rabbit';

describe('calls of a key beside a call of another one', () => {
  let gateway: RunningGateway;
  let held: { started: Promise<void>; finish: () => void };
  /** The other key's call, and as many of the key as may be at work. */
  let atWork: Promise<Received>[];
  const waiting = () => gateway.metric('gateway_calls_waiting');
  const callMany = (count: number) => Array.from({ length: count }, () => gateway.post('/v1/users/add', BODY));
  const start = async (requestTimeoutMs: number) => {
    gateway = await RunningGateway.start({ config: { requestTimeoutMs } });
    await gateway.post('/v1/users/add', BODY, OTHER);
    const other = gateway.rabbit.hold();
    atWork = [gateway.post('/v1/users/add', BODY, OTHER)];
    await other.started;
    const many = gateway.rabbit.hold(MOST_LIGHT_BESIDE);
    held = { ...many, finish: () => [other, many].forEach(({ finish }) => finish()) };
    atWork.push(...callMany(MOST_LIGHT_BESIDE));
    await held.started;
  };
  afterEach(() => gateway.stop());

  it('begin a few at a time, and the other key does not wait behind the rest', async () => {
    await start(60_000);
    atWork.push(...callMany(20));
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
    expect(Math.max(...timeouts)).toBeLessThanOrEqual(60_000 - waited);
  });

  it('are answered without a turn when their time is over, and no other call has it instead', async () => {
    // Time for the calls at work to begin on a busy machine.
    await start(3000);
    gateway.rabbit.respond = ({ options }) => {
      // As RabbitClient does.
      if (options.timeoutMs < 1) throw UNAVAILABLE;
      throw new Error('It had a turn.');
    };
    const [late] = callMany(1);
    await eventually(async () => (await waiting()) === 1);
    const [next] = callMany(1);
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

  it('are additions of many users in a body below 2 KiB, too', async () => {
    const small = BODY.padEnd(2000);
    // They cost a consumer as much as four times their bytes of other commands.
    const most = Math.ceil((MOST_OF_KEY * HEAVIEST_BYTES) / (4 * small.length));
    held.finish();
    await Promise.all(atWork);
    held = gateway.rabbit.hold(most);
    atWork = call(most + 20, undefined, small);
    await held.started;
    await eventually(async () => (await waiting()) === 20);
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
    expect(await holdings()).toEqual({ places: atWork.length + 1, bodies: LARGE.length, answers: held0.answers + 1024 });
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
