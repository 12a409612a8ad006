import { existsSync, readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { notification } from '@app/testing/system/notification';
import { System } from '@app/testing/system/system';
import { ServiceProcess, type AppName } from '@app/testing/system/service-process';
import { eventually } from '@app/testing/eventually';
import { freePort } from '@app/testing/free-port';
import { keepCalling } from '@app/testing/system/keep-calling';

/** The kernel's own limit of connections that a process has not accepted. */
function mostInBacklog(): number {
  const file = '/proc/sys/net/core/somaxconn';
  return existsSync(file) ? Number(readFileSync(file, 'utf8')) : 128;
}

const APPS: AppName[] = ['gateway', 'users', 'notifications'];

describe('a service', () => {
  let system: System;
  beforeAll(async () => {
    system = await System.start({ env: { LOG_LEVEL: 'debug', SHUTDOWN_DELAY_MS: '1000' } });
  });
  afterAll(() => system.stop());

  const add = (notificationId: string, baseUrl?: string) =>
    system.call('notifications/add', notification({ notificationId }), {}, baseUrl);

  it.each(APPS)('%s reports all problems of its configuration at once, without values, and exits 1', async (app) => {
    const broken = new ServiceProcess(app, {
      AMQP_URL: 'http://secret@host',
      DATABASE_URL: 'secret',
      LOG_LEVEL: 'loud',
      HEALTH_PORT: '-1',
    });
    await expect(broken.start()).rejects.toThrow('exited with 1');
    const text = broken.output.join('\n');
    for (const name of ['AMQP_URL', 'LOG_LEVEL', 'HEALTH_PORT', ...(app === 'gateway' ? [] : ['DATABASE_URL'])])
      expect(text).toContain(name);
    expect(text).not.toContain('secret');
  });

  it.each(['PORT', 'HEALTH_PORT', 'PORT and HEALTH_PORT'])(
    'a %s that is taken is reported in one line, and the process exits 1',
    async (names) => {
      const taken = names.includes(' ') ? String(await freePort()) : new URL(system.services.gateway.url).port;
      const ports = Object.fromEntries(names.split(' and ').map((name) => [name, taken]));
      const second = new ServiceProcess('gateway', { AMQP_URL: 'amqp://127.0.0.1:1', PORT: '0', ...ports });
      await expect(second.start()).rejects.toThrow('exited with 1');
      const line = second.output.find((text) => text.includes('this port is taken; PORT, OPERATOR_PORT or HEALTH_PORT'));
      expect(JSON.parse(line!)).toMatchObject({ level: 60, port: Number(taken) });
      expect(line).not.toContain('stack');
    },
  );

  it.each(['users', 'notifications'] as const)(
    '%s starts before its dependencies, is alive and not ready, and stops with exit 0',
    async (app) => {
      const lonely = new ServiceProcess(app, { AMQP_URL: 'amqp://127.0.0.1:1', DATABASE_URL: 'postgres://127.0.0.1:1/none' });
      await lonely.start({ untilReady: false });
      expect((await lonely.health('live')).status).toBe(200);
      expect((await lonely.health('ready')).status).toBe(503);
      expect(await lonely.stop()).toBe(0);
    },
  );

  it.each([
    [{}, /^http:\/\/(\[::1?\]|127\.0\.0\.1|0\.0\.0\.0):/],
    [{ HOST: '127.0.0.1', HEALTH_HOST: '127.0.0.1' }, /^http:\/\/127\.0\.0\.1:/],
  ])('the gateway with %j starts before its dependencies, listens there, and IPv4 always finds it', async (env, url) => {
    const lonely = new ServiceProcess('gateway', { AMQP_URL: 'amqp://127.0.0.1:1', PORT: '0', ...env });
    await lonely.start({ untilReady: false });
    await eventually(() => lonely.url);
    expect(lonely.url).toMatch(url);
    expect((await fetch(`http://127.0.0.1:${new URL(lonely.url).port}/health/live`)).status).toBe(200);
    expect((await lonely.health('live')).status).toBe(200);
    expect((await lonely.health('ready')).status).toBe(503);
    expect(await lonely.stop()).toBe(0);
  });

  it('lets a thousand clients connect while the gateway is busy, without a second try', async () => {
    const busy = new ServiceProcess('gateway', { AMQP_URL: 'amqp://127.0.0.1:1', PORT: '0', HOST: '127.0.0.1' });
    await busy.start({ untilReady: false });
    await eventually(() => busy.url);
    // It accepts nothing now: the kernel keeps the connections, and drops those that it has no room for.
    busy.kill('SIGSTOP');
    const port = Number(new URL(busy.url).port);
    const wanted = Math.min(1000, mostInBacklog());
    let connected = 0;
    const clients = Array.from({ length: wanted }, () => connect(port, '127.0.0.1', () => connected++));
    try {
      await eventually(() => connected === wanted);
    } finally {
      clients.forEach((client) => client.destroy());
      await busy.stop('SIGKILL');
    }
  });

  it('answers every call with 200 while gateways and writers are replaced one after the other', async () => {
    const gateways = [system.services.gateway, await system.replica('gateway').start()];
    const writers = [system.services.notifications, await system.replica('notifications').start()];
    const wrong: unknown[] = [];
    let answered = 0;
    let target = 0;
    const end = keepCalling(8, 400, async (client, call) => {
      const { status, body } = await add(`rolling ${client} ${call}`, gateways[target]?.url);
      answered++;
      if (status !== 200) wrong.push(body);
    });
    const someMore = async () => {
      const before = answered;
      await eventually(() => answered > before + 100);
    };
    await someMore();
    for (const writer of writers) {
      expect(await writer.stop()).toBe(0);
      await someMore();
      await writer.start();
    }
    target = 1;
    await someMore();
    expect(await gateways[0]?.stop()).toBe(0);
    await gateways[0]?.start();
    target = 0;
    await someMore();
    expect(await gateways[1]?.stop()).toBe(0);
    await someMore();
    expect(await system.services.users.stop()).toBe(0);
    await system.services.users.start();
    await someMore();
    await end();
    expect(await writers[1]?.stop()).toBe(0);
    expect(wrong).toEqual([]);
  });

  it('answers a call that may take longer than the drain with 504 when the gateway stops, and exits 0', async () => {
    const { notifications } = system.services;
    await notifications.stop();
    const patient = await system.replica('gateway', { REQUEST_TIMEOUT_MS: '60000' }).start();
    const answer = add('longer than the drain', patient.url);
    await eventually(async () => /^gateway_calls_in_flight\{.*\} 1$/m.test(await patient.metrics()));
    expect(await patient.stop()).toBe(0);
    expect((await answer).status).toBe(504);
    await notifications.start();
  });

  it('passes the request id of the caller through HTTP and the logs', async () => {
    const id = 'trace-me-42';
    const answer = await system.call('notifications/get', { organizationId: 'o', userId: 'u' }, { 'x-request-id': id });
    expect(answer.headers.get('x-request-id')).toBe(id);
    for (const { output } of [system.services.gateway, system.services.notifications]) {
      await eventually(() => output.some((line) => line.includes(id)));
    }
    const made = await system.call(
      'notifications/get',
      { organizationId: 'o', userId: 'u' },
      { 'x-request-id': 'x'.repeat(129) },
    );
    expect(made.headers.get('x-request-id')).toMatch(/^[0-9a-f-]{36}$/);
  });
});
