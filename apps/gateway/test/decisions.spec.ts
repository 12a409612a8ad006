import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { HTTP_MESSAGES } from '@app/contracts/all-messages';
import { ApiError } from '@app/contracts/error';
import { CREDENTIALS, RunningGateway, type Received } from './running-gateway';
import { answer, UNAVAILABLE } from './stub-rabbit';

const OPERATIONS = HTTP_MESSAGES.map(({ http }) => http.path);
const PUBLIC = ['/health/live', '/health/ready', '/openapi.json', '/docs', '/docs/', '/docs/start.js', '/docs/swagger-ui.css'];
const USERS = { data: { organizationId: 'acme', users: [{ userId: 'ada' }] } };

/** The HTTP statuses and the texts in the table of all errors, in its order. */
const PAGE = readFileSync(join(__dirname, '../../../docs/errors.md'), 'utf8');
const ROWS = PAGE.slice(PAGE.indexOf('## All of them'), PAGE.indexOf('## Errors of one operation'))
  .split('\n')
  .map((line) => line.split(' | '))
  .map(([http, ...cells]) => ({
    http: http.replace('| ', ''),
    texts: [...(cells.at(-1) ?? '').matchAll(/`[^`]+`/g)].map(([text]) => text),
  }));
const rowOf = ({ status, json }: Received) =>
  ROWS.findIndex(({ http, texts }) => http === `${status}` && texts.includes(`\`${json().error?.message}\``));

function expectError(received: Received, http: number, status: string, message?: string): void {
  const { error, ...others } = received.json();
  expect(received.status).toBe(http);
  expect(others).toEqual({});
  expect(error).toMatchObject({ status, message: message ?? expect.stringMatching(/^\S.*[^.]\.?$/) });
  expect(Object.keys(error ?? {}).sort()).toEqual(error?.details ? ['details', 'message', 'status'] : ['message', 'status']);
  expect(received.headers['content-type']).toBe('application/json; charset=utf-8');
  expect(received.headers['x-request-id']).toBeTruthy();
  expect('retry-after' in received.headers).toBe(http === 429 || http === 503);
}

describe('what is decided, in this order', () => {
  let gateway: RunningGateway;
  beforeAll(async () => (gateway = await RunningGateway.start()));
  afterAll(() => gateway.stop());
  beforeEach(() => {
    gateway.rabbit.verdict = 'accepted';
    gateway.rabbit.calls.length = 0;
    gateway.rabbit.respond = () => answer({ status: 'success' });
  });

  it('answers a request with every problem by the first one, then by the next, until none is left, as docs/errors.md has them', async () => {
    // A fresh token each time: its verdict must not come from the cache.
    const known = () => ({ 'x-svc-api-key': 'demo-key', 'x-svc-auth-token': randomUUID() });
    const tooLarge = 'x'.repeat(1024 * 1024 + 1);
    const text = { 'content-type': 'text/plain' };
    const json = { 'content-type': 'application/json' };
    const many = Object.fromEntries(Array.from({ length: 130 }, (_, number) => [`x-${number}`, '']));
    const twice = { 'content-type': ['text/plain', 'text/plain'] };
    gateway.rabbit.respond = () => {
      throw new ApiError('ALREADY_EXISTS', 'Exists.');
    };
    const rows: number[] = [];
    const expectNext = (received: Received, http: number, status: string) => {
      expectError(received, http, status);
      rows.push(rowOf(received));
    };

    const nowhere = { method: 'PUT', path: '/v1/users' };
    // Without a body: the connection is closed.
    expectNext(await gateway.send({ ...nowhere, headers: { ...many, ...twice } }), 431, 'INVALID_ARGUMENT');
    expectNext(await gateway.send({ ...nowhere, headers: twice }), 400, 'INVALID_ARGUMENT');
    expectNext(await gateway.send({ ...nowhere, headers: text, body: tooLarge }), 404, 'NOT_FOUND');
    expectNext(await gateway.send({ method: 'PUT', headers: text, body: tooLarge }), 405, 'INVALID_ARGUMENT');
    expectNext(await gateway.send({ headers: text, body: tooLarge }), 401, 'UNAUTHENTICATED');
    gateway.rabbit.verdict = 'disabled';
    expectNext(await gateway.send({ headers: { ...known(), ...text }, body: tooLarge }), 403, 'PERMISSION_DENIED');
    gateway.rabbit.verdict = 'accepted';
    expectNext(await gateway.send({ headers: { ...known(), ...text }, body: tooLarge }), 415, 'INVALID_ARGUMENT');
    const unread = { ...json, 'idempotency-key': '' };
    expectNext(await gateway.send({ headers: { ...known(), ...unread }, body: tooLarge }), 413, 'INVALID_ARGUMENT');
    expectNext(await gateway.send({ headers: { ...known(), ...unread }, body: '{' }), 400, 'INVALID_ARGUMENT');
    expectNext(await gateway.post('/v1/users/add', { data: {} }, unread), 400, 'INVALID_ARGUMENT');
    expectNext(await gateway.post('/v1/users/add', { data: {} }), 400, 'INVALID_ARGUMENT');
    expect(gateway.rabbit.calls).toEqual([]);
    expectError(await gateway.post('/v1/users/add', USERS), 409, 'ALREADY_EXISTS');
    expect(rows).toEqual([...new Set(rows)].sort((a, b) => a - b));
    expect(rows).not.toContain(-1);
  });

  it('counts the calls of a disabled key as well', async () => {
    const limited = await RunningGateway.start({ config: { rateLimitPerSecond: 5 } });
    limited.rabbit.verdict = 'disabled';
    const answers = await Promise.all(Array.from({ length: 20 }, () => limited.post('/v1/users/add', USERS)));
    await limited.stop();
    const of = (wanted: number) => answers.filter(({ status }) => status === wanted).length;
    expect(of(403)).toBeGreaterThanOrEqual(5);
    expect(of(429)).toBeGreaterThan(0);
    expect(of(403) + of(429)).toBe(20);
  });

  it.each([
    '/',
    '/v1',
    '/v1/users',
    '/v1/users/add/',
    '/v1/users/Add',
    '/v1//users/add',
    '/v2/users/add',
    '/docs/x',
    '/docs/../etc',
  ])('answers 404 at %s, without credentials as well', async (path) => {
    for (const method of ['GET', 'POST', 'OPTIONS']) expectError(await gateway.send({ method, path }), 404, 'NOT_FOUND');
  });

  it('answers 404 at a path that cannot be decoded, with the request id of the caller, and logs and measures it', async () => {
    // Its own, because strangers have ten lines a second.
    const other = await RunningGateway.start();
    const measured = () => other.metric('http_request_seconds', { route: 'unknown', le: '+Inf' });
    const before = await measured();
    const received = await other.send({ path: '/v1/%zz', headers: { 'x-request-id': 'mine' } });
    expectError(received, 404, 'NOT_FOUND');
    expect(received.headers['x-request-id']).toBe('mine');
    expect(await other.log.line({ requestId: 'mine' })).toMatchObject({ msg: 'request', status: 404, error: 'NOT_FOUND' });
    expect(await measured()).toBe(before + 1);
    await other.stop();
  });

  it.each(OPERATIONS)('answers 405 to any other method at %s', async (path) => {
    for (const method of ['GET', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE', 'QUERY', 'PROPFIND']) {
      const received = await gateway.send({ method, path: `${path}?q=1`, headers: CREDENTIALS });
      expectError(received, 405, 'INVALID_ARGUMENT', 'The method must be POST.');
      expect(received.headers.allow).toBe('POST');
    }
    const head = await gateway.send({ method: 'HEAD', path });
    expect([head.status, head.headers.allow, head.text]).toEqual([405, 'POST', '']);
  });

  it.each(PUBLIC)('answers 405 to any other method at %s', async (path) => {
    for (const method of ['POST', 'PUT', 'DELETE', 'OPTIONS']) {
      const received = await gateway.send({ method, path });
      expectError(received, 405, 'INVALID_ARGUMENT', 'The method must be GET or HEAD.');
      expect(received.headers.allow).toBe('GET, HEAD');
    }
  });

  it('answers 401 with the same body for all wrong credentials', async () => {
    const bad = [
      {},
      { 'x-svc-api-key': 'demo-key' },
      { 'x-svc-auth-token': 'demo-token' },
      { ...CREDENTIALS, 'x-svc-api-key': 'unknown' },
      { ...CREDENTIALS, 'x-svc-api-key': ' ' },
      { ...CREDENTIALS, 'x-svc-api-key': 'k'.repeat(257) },
      { ...CREDENTIALS, 'x-svc-auth-token': 't'.repeat(513) },
      { ...CREDENTIALS, 'x-svc-api-key': ['demo-key', 'demo-key'] },
    ];
    const answers = await Promise.all(bad.map((headers) => gateway.send({ headers, body: 'not JSON' })));
    for (const received of answers) expectError(received, 401, 'UNAUTHENTICATED');
    expect(new Set(answers.map(({ text }) => text)).size).toBe(1);
  });

  it('decides 401 before the body is read', async () => {
    const socket = await gateway.connect();
    const received = new Promise<string>((resolve) => socket.setEncoding('utf8').once('data', resolve));
    socket.write('POST /v1/users/add HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n');
    expect(await received).toMatch(/^HTTP\/1.1 401 /);
    socket.destroy();
  });

  it('answers 503 when the credentials cannot be checked', async () => {
    gateway.rabbit.verdict = UNAVAILABLE;
    const headers = { ...CREDENTIALS, 'x-svc-auth-token': randomUUID() };
    expectError(await gateway.post('/v1/users/add', USERS, headers), 503, 'UNAVAILABLE');
    expect(gateway.rabbit.calls).toEqual([]);
    gateway.rabbit.verdict = 'accepted';
  });

  it.each([
    ['FAILED_PRECONDITION', 400],
    ['NOT_FOUND', 404],
    ['ALREADY_EXISTS', 409],
    ['RESOURCE_EXHAUSTED', 429],
    ['UNAVAILABLE', 503],
    ['DEADLINE_EXCEEDED', 504],
  ] as const)('passes on what a service answers: %s as %i', async (status, http) => {
    gateway.rabbit.respond = () => {
      throw new ApiError(status, 'What the service says.');
    };
    const requestId = `says-${status}`;
    const answer = await gateway.post('/v1/users/add', USERS, { 'x-request-id': requestId });
    expectError(answer, http, status, 'What the service says.');
    expect(await gateway.log.line({ msg: 'request', requestId })).toMatchObject({ status: http, error: status });
  });

  it('logs the error.status of what the gateway itself refuses, and none for a success', async () => {
    await gateway.post('/v1/users/add', {}, { 'x-request-id': 'refused-here' });
    expect(await gateway.log.line({ requestId: 'refused-here' })).toMatchObject({ status: 400, error: 'INVALID_ARGUMENT' });
    gateway.rabbit.respond = () => answer({ status: 'success' });
    await gateway.post('/v1/users/add', USERS, { 'x-request-id': 'success' });
    expect(await gateway.log.line({ requestId: 'success' })).not.toHaveProperty('error');
  });

  it('answers a bug with 500 and a fixed text, and logs it under the request id', async () => {
    gateway.rabbit.respond = () => {
      throw new TypeError('secret of ours');
    };
    const received = await gateway.post('/v1/users/add', USERS, { 'x-request-id': 'bug-1' });
    expectError(received, 500, 'INTERNAL', 'An internal error occurred. The outcome is unknown.');
    const line = await gateway.log.line({ requestId: 'bug-1' });
    expect(line).toMatchObject({ level: 40, status: 500, error: 'INTERNAL', err: { message: 'secret of ours' } });
  });
});

describe('limits of calls', () => {
  it('answers 429 above the rate of a key, and calls no service', async () => {
    const gateway = await RunningGateway.start({ config: { rateLimitPerSecond: 2 } });
    expect(await gateway.metric('gateway_key_rate_limit')).toBe(2);
    const answers = await Promise.all([1, 2, 3].map(() => gateway.post('/v1/users/add', USERS)));
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 200, 429]);
    const refused = answers.find(({ status }) => status === 429) as Received;
    expectError(refused, 429, 'RESOURCE_EXHAUSTED');
    expect(refused.headers['retry-after']).toBe('1');
    expect(gateway.rabbit.calls).toHaveLength(2);
    const requestIds = [refused.headers['x-request-id']];
    expect(await gateway.log.line({ msg: 'calls were refused' })).toMatchObject({ limit: 'rate', calls: 1, requestIds });
    await gateway.stop();
  });

  it('answers 429 above the calls in flight, and has room again when they are answered', async () => {
    const gateway = await RunningGateway.start({ config: { maxInFlight: 1 } });
    const { started, finish } = gateway.rabbit.hold();
    const first = gateway.post('/v1/users/add', USERS);
    await started;
    expectError(await gateway.post('/v1/users/add', 'x', { 'content-type': 'text/plain' }), 429, 'RESOURCE_EXHAUSTED');
    // Unread: not even without credentials.
    expectError(await gateway.send({}), 429, 'RESOURCE_EXHAUSTED');
    expect((await gateway.send({ method: 'GET', path: '/health/live' })).status).toBe(200);
    finish();
    expect((await first).status).toBe(200);
    expect((await gateway.post('/v1/users/add', USERS)).status).toBe(200);
    await gateway.stop();
  });
});
