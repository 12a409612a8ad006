import { connect } from 'amqplib';
import type { CloudEvent } from '@app/contracts/event';
import type { ApiKeyRevokedData } from '@app/contracts/events.users';
import { eventually } from '@app/testing/eventually';
import { DEMO_HEADERS, OPERATIONS, System, type HttpAnswer } from '@app/testing/system/system';
import type { ServiceProcess } from '@app/testing/system/service-process';

describe('credentials', () => {
  let system: System;
  beforeAll(async () => {
    system = await System.start();
  });
  afterAll(() => system.stop());

  const get = (headers: Record<string, string>) =>
    system.call('notifications/get', { organizationId: 'o', userId: 'u' }, headers);
  const status = ({ status: http, body }: HttpAnswer) => [http, body.error?.status];

  it.each(OPERATIONS)('%s answers the same 401 for all wrong credentials, before it reads the body', async (operation) => {
    const wrong: Record<string, string>[] = [
      { 'x-svc-api-key': '' },
      { 'x-svc-auth-token': '' },
      { 'x-svc-api-key': 'unknown' },
      { 'x-svc-auth-token': 'wrong' },
      { 'x-svc-api-key': 'x'.repeat(1000) },
    ];
    const answers = await Promise.all(wrong.map((headers) => system.post(operation, 'not json', headers)));
    const bare = await fetch(`${system.services.gateway.url}/v1/${operation}`, { method: 'POST', body: 'x' });
    const bodies = [...answers.map(({ body }) => body), (await bare.json()) as HttpAnswer['body']];
    expect([...answers.map((answer) => answer.status), bare.status]).toEqual(bodies.map(() => 401));
    expect(new Set(bodies.map((body) => JSON.stringify(body))).size).toBe(1);
    expect(bodies[0]?.error?.status).toBe('UNAUTHENTICATED');
    expect(answers[0]?.headers.get('x-request-id')).toBeTruthy();
  });

  it('creates keys whose tokens are shown once, and isolates them', async () => {
    const { key, token } = JSON.parse(await system.keys('create', '--json')) as { key: string; token: string };
    const own = { 'x-svc-api-key': key, 'x-svc-auth-token': token };
    expect((await get(own)).status).toBe(200);
    expect(status(await get({ ...own, 'x-svc-api-key': DEMO_HEADERS['x-svc-api-key'] }))).toEqual([401, 'UNAUTHENTICATED']);
    const list = await system.keys('list');
    expect(list).toContain(own['x-svc-api-key']);
    expect(list).not.toContain(own['x-svc-auth-token']);
  });

  it('accepts old and new token after a rotation with grace, and only the new one without', async () => {
    const own = await system.createKey();
    const rotate = async (...options: string[]) =>
      (JSON.parse(await system.keys('rotate', own['x-svc-api-key'], '--json', ...options)) as { token: string }).token;
    const second = await rotate('--grace', '1h');
    expect((await get(own)).status).toBe(200);
    expect((await get({ ...own, 'x-svc-auth-token': second })).status).toBe(200);
    const third = await rotate('--grace', '0s');
    expect((await get({ ...own, 'x-svc-auth-token': third })).status).toBe(200);
    await eventually(async () => (await get(own)).status === 401);
  });

  it('refuses a disabled key with 403 and a revoked one with 401, within 5 s on a gateway that had cached it', async () => {
    const own = await system.createKey();
    expect((await get(own)).status).toBe(200);
    await system.keys('disable', own['x-svc-api-key']);
    const disabledAt = Date.now();
    await eventually(async () => (await get(own)).status === 403);
    expect(Date.now() - disabledAt).toBeLessThan(5500);
    expect(status(await get(own))).toEqual([403, 'PERMISSION_DENIED']);
    expect(status(await get({ ...own, 'x-svc-auth-token': 'wrong' }))).toEqual([401, 'UNAUTHENTICATED']);
    await system.keys('enable', own['x-svc-api-key']);
    await eventually(async () => (await get(own)).status === 200);
    await system.keys('revoke', own['x-svc-api-key']);
    const revokedAt = Date.now();
    await eventually(async () => (await get(own)).status === 401);
    expect(Date.now() - revokedAt).toBeLessThan(5500);
  });

  it('refuses a revoked key at once in every gateway, because of the event', async () => {
    const own = await system.createKey();
    const second = await system.replica('gateway').start();
    const gateways = [system.services.gateway, second];
    const listened = await connect(system.amqpUrl);
    const channel = await listened.createChannel();
    const { queue } = await channel.assertQueue('', { exclusive: true });
    await channel.bindQueue(queue, 'events', 'api-key.revoked.v1');
    const published: CloudEvent<ApiKeyRevokedData>[] = [];
    await channel.consume(
      queue,
      (message) => void (message && published.push(JSON.parse(message.content.toString()) as CloudEvent<ApiKeyRevokedData>)),
    );
    const call = async (url: string) =>
      (await system.call('notifications/get', { organizationId: 'o', userId: 'u' }, own, url)).status;
    /** Number of first questions for unknown credentials. An old verdict is renewed instead, and does not count. */
    const misses = async (gateway: ServiceProcess) =>
      Number(/^gateway_authentications_total\{source="miss"\} (\d+)/m.exec(await gateway.metrics())?.[1]);

    try {
      for (const { url } of gateways) expect(await call(url)).toBe(200);
      const before = await Promise.all(gateways.map(misses));
      await system.keys('revoke', own['x-svc-api-key']);
      for (const { url } of gateways) await eventually(async () => (await call(url)) === 401);
      // By the event: a verdict that has become old is renewed, and that is no miss.
      expect(await Promise.all(gateways.map(misses))).toEqual(before.map((count) => count + 1));
      await eventually(() => published.length > 0);
      expect(published).toMatchObject([
        {
          subject: own['x-svc-api-key'],
          apikey: own['x-svc-api-key'],
          data: { reason: 'revoked', tokenIds: [expect.any(String)] },
        },
      ]);
    } finally {
      await listened.close();
      await second.stop();
    }
  });

  it('accepts known credentials while the users service is away, and answers 503 for unknown ones', async () => {
    const own = await system.createKey();
    const later = await system.createKey();
    expect((await get(own)).status).toBe(200);
    const stale = async () => Number(/\{source="stale"\} (\d+)/.exec(await system.services.gateway.metrics())?.[1] ?? 0);
    const before = await stale();
    await system.services.users.stop();
    // The gateway asks when the cached verdict is old, gets no answer, and keeps using it.
    const statuses = new Set<number>();
    await eventually(async () => {
      statuses.add((await get(own)).status);
      return (await stale()) > before + 10;
    });
    expect(statuses).toEqual(new Set([200]));
    expect(status(await get(later))).toEqual([503, 'UNAVAILABLE']);
    await system.services.users.start();
    await eventually(async () => (await get(later)).status === 200);
  });

  it('never writes a token to a log', () => {
    const lines = Object.values(system.services).flatMap(({ output }) => output);
    expect(lines.length).toBeGreaterThan(10);
    expect(lines.filter((line) => line.includes('demo-token') || line.includes('tok_'))).toEqual([]);
  });
});
