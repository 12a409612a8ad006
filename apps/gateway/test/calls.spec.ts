import { eventually } from '@app/testing/eventually';
import { gate } from '@app/testing/gate';
import { CREDENTIALS, RunningGateway } from './running-gateway';
import { answer } from './stub-rabbit';

const USERS = { organizationId: 'acme', users: [{ userId: 'ada' }] };
const NOTIFICATION = {
  organizationId: 'acme',
  documentId: 'roadmap',
  actionUser: { userId: 'ada' },
  displayHeadlineMessageTemplate: 'Hello',
};
const FILTERS = { organizationId: 'acme', documentId: 'roadmap' };
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

describe('a call', () => {
  let gateway: RunningGateway;
  beforeAll(async () => (gateway = await RunningGateway.start({ config: { requestTimeoutMs: 4321 } })));
  afterAll(() => gateway.stop());
  beforeEach(() => {
    gateway.rabbit.calls.length = 0;
    gateway.rabbit.respond = () => answer({ status: 'success' });
  });

  it.each([
    ['/v1/users/add', 'users.add.v1', USERS],
    ['/v1/notifications/add', 'notifications.add.v1', NOTIFICATION],
    ['/v1/notifications/get', 'notifications.get.v1', FILTERS],
  ])('of %s is sent as %s, with who calls and how long to wait', async (path, pattern, data) => {
    const { status } = await gateway.post(path, { data, more: 1 }, { 'x-request-id': 'mine' });
    expect(status).toBe(200);
    expect(gateway.rabbit.calls).toEqual([
      { pattern, body: data, options: { apiKey: 'demo-key', requestId: 'mine', timeoutMs: expect.any(Number) } },
    ]);
  });

  it('has the time that the look at its credentials has left', async () => {
    gateway.rabbit.keys.add('late-key');
    const { open: letGo, opened } = gate();
    gateway.rabbit.checking = opened;
    const misses = () => gateway.metric('gateway_authentications_total', { source: 'miss' });
    const before = await misses();
    const first = gateway.post('/v1/users/add', { data: USERS }, { 'x-svc-api-key': 'late-key' });
    await eventually(async () => (await misses()) > before);
    const from = performance.now();
    await eventually(() => performance.now() - from > 300);
    letGo();
    await first;
    const lastTimeoutMs = () => gateway.rabbit.calls.at(-1)!.options.timeoutMs;
    const late = lastTimeoutMs();
    expect(late).toBeLessThanOrEqual(4321 - 300 + 1);
    // Now they are known. A busy machine delays some of the calls.
    await eventually(async () => {
      await gateway.post('/v1/users/add', { data: USERS }, { 'x-svc-api-key': 'late-key' });
      expect(lastTimeoutMs()).toBeLessThanOrEqual(4321);
      return lastTimeoutMs() > late;
    });
  });

  it('drops fields it does not know', async () => {
    await gateway.post('/v1/users/add', { data: { ...USERS, later: true } });
    expect(gateway.rabbit.calls[0].body).toEqual(USERS);
  });

  it.each([
    ['small', '{"status":"success", "n": 1e2,"data":{"__proto__":{"success":true}}}'],
    ['large', `{"text": "${'é😀\\u0000'.repeat(100_000)}"}`],
  ])('is answered with the exact reply of the service, %s', async (_, json) => {
    gateway.rabbit.respond = () => ({ body: Buffer.from(json), headers: {}, parse: () => undefined });
    const received = await gateway.post('/v1/users/add', { data: { organizationId: 'acme', users: [{ userId: '__proto__' }] } });
    expect(received.status).toBe(200);
    expect(received.text).toBe(`{"result":${json}}`);
    expect(received.headers['content-type']).toBe('application/json; charset=utf-8');
    expect(gateway.rabbit.calls[0].body).toEqual({ organizationId: 'acme', users: [{ userId: '__proto__' }] });
  });

  it('shows the id of a notification, percent-encoded', async () => {
    gateway.rabbit.respond = () => answer({}, { 'x-notification-id': 'né 1/✓' });
    const received = await gateway.post('/v1/notifications/add', { data: NOTIFICATION });
    expect(received.headers['x-notification-id']).toBe('n%C3%A9%201%2F%E2%9C%93');
    expect(received.text).toBe('{"result":{}}');
  });

  it.each(['/v1/users/add', '/v1/notifications/add'])('of %s passes an Idempotency-Key on', async (path) => {
    const data = path.includes('users') ? USERS : NOTIFICATION;
    for (const key of ['a', ' ~!{}"é'.slice(1, 6), 'k'.repeat(255)]) {
      await gateway.post(path, { data }, { 'idempotency-key': key });
      expect(gateway.rabbit.calls.at(-1)?.options.idempotencyKey).toBe(key);
    }
  });

  it.each([
    ['an empty one', ''],
    ['256 characters', 'k'.repeat(256)],
    ['a letter beyond ASCII', 'é'],
    ['a tab', 'a\tb'],
  ])('refuses an Idempotency-Key of %s', async (_, key) => {
    for (const [path, data] of [
      ['/v1/users/add', USERS],
      ['/v1/notifications/add', NOTIFICATION],
    ] as const) {
      const { status, json } = await gateway.post(path, { data }, { 'idempotency-key': key });
      expect([status, json().error?.status]).toEqual([400, 'INVALID_ARGUMENT']);
    }
    expect(gateway.rabbit.calls).toEqual([]);
  });

  it('of notifications/get ignores an Idempotency-Key', async () => {
    expect((await gateway.post('/v1/notifications/get', { data: FILTERS }, { 'idempotency-key': '' })).status).toBe(200);
  });

  it('answers with the request id of the caller, or with a new one', async () => {
    const idFor = async (id?: string) =>
      (await gateway.post('/v1/users/add', { data: USERS }, id === undefined ? {} : { 'x-request-id': id })).headers[
        'x-request-id'
      ];
    expect(await idFor('trace 1')).toBe('trace 1');
    expect(await idFor('x'.repeat(128))).toBe('x'.repeat(128));
    for (const id of [undefined, 'x'.repeat(129), 'é']) expect(await idFor(id)).toMatch(UUID);
    expect(gateway.rabbit.calls.at(-1)?.options.requestId).toMatch(UUID);
  });

  it('is logged in one line, which holds no token, body or query', async () => {
    const before = gateway.log.lines.length;
    const secret = 'canary-5f1c';
    const data = { organizationId: secret, users: [{ userId: secret }] };
    await gateway.post(`/v1/users/add?q=${secret}`, { data }, { 'x-request-id': 'logged', 'x-svc-auth-token': secret });
    await gateway.post(`/v1/${secret}`, { data }, { 'x-svc-auth-token': secret });
    await gateway.send({ headers: { 'x-svc-api-key': secret, 'x-svc-auth-token': secret, 'x-request-id': 'last' } });
    expect(await gateway.log.line({ requestId: 'logged' })).toMatchObject({
      level: 30,
      msg: 'request',
      method: 'POST',
      route: '/v1/users/add',
      status: 200,
      durationMs: expect.any(Number),
      apiKey: 'demo-key',
    });
    await gateway.log.line({ requestId: 'last' });
    const lines = gateway.log.lines.slice(before);
    expect(lines.filter(({ msg }) => msg === 'request')).toHaveLength(3);
    expect(JSON.stringify(lines)).not.toContain(secret);
  });
});

describe('health', () => {
  let gateway: RunningGateway;
  beforeAll(async () => (gateway = await RunningGateway.start()));
  afterAll(() => gateway.stop());
  const get = (path: string) => gateway.send({ method: 'GET', path });

  it('readiness depends on what the process needs; liveness on nothing', async () => {
    let broker: string | undefined;
    gateway.readiness.add('broker', () => broker);
    expect((await get('/health/ready')).status).toBe(200);
    broker = 'not connected';
    const ready = await get('/health/ready');
    expect([ready.status, ready.text]).toEqual([503, '{"status":"unavailable","checks":{"broker":"not connected"}}']);
    expect(ready.headers['retry-after']).toBe('1');
    expect((await get('/health/live')).text).toBe('{"status":"ok"}');
    broker = undefined;
  });

  it('stays ready without a dependency that it no longer requires, and names it and the reason', async () => {
    let required = true;
    gateway.readiness.add('users', () => 'does not answer', { required: () => required });
    expect((await get('/health/ready')).status).toBe(503);
    required = false;
    const ready = await get('/health/ready');
    expect([ready.status, JSON.parse(ready.text)]).toEqual([
      200,
      { status: 'ok', checks: { broker: 'up', users: 'does not answer' }, away: [{ name: 'users', reason: 'does not answer' }] },
    ]);
  });

  it('is not ready while draining, and calls are still served, each as the last of its connection', async () => {
    gateway.readiness.draining = true;
    expect((await get('/health/ready')).status).toBe(503);
    const headers = { ...CREDENTIALS, 'content-type': 'application/json', connection: 'keep-alive' };
    const served = await gateway.send({ headers, body: JSON.stringify({ data: USERS }) });
    expect([served.status, served.headers.connection]).toEqual([200, 'close']);
    const refused = await gateway.send({ headers: { connection: 'keep-alive' } });
    expect([refused.status, refused.headers.connection]).toEqual([401, 'close']);
  });
});
