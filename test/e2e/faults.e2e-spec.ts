import { eventually } from '@app/testing/eventually';
import { keepCalling } from '@app/testing/system/keep-calling';
import { PrivateServer } from '@app/testing/system/private-server';
import { notification } from '@app/testing/system/notification';
import { System, type HttpAnswer } from '@app/testing/system/system';

const TIMEOUT_MS = 3000;

describe('when something is away', () => {
  let broker: PrivateServer;
  let system: System;
  let number = 0;

  beforeAll(async () => {
    broker = await PrivateServer.start('rabbitmq', '--management');
    system = await System.start({ amqpUrl: broker.url, env: { REQUEST_TIMEOUT_MS: String(TIMEOUT_MS) } });
  });
  afterAll(async () => {
    await system.stop();
    await broker.remove();
  });

  const add = async (id = `n${number++}`): Promise<HttpAnswer & { id: string; ms: number }> => {
    const start = performance.now();
    const answer = await system.call('notifications/add', notification({ notificationId: id }));
    return { ...answer, id, ms: performance.now() - start };
  };
  /** Ids that are stored, each as often as a page has it. */
  const storedOf = async (ids: string[]): Promise<string[]> => {
    const found: string[] = [];
    for (let at = 0; at < ids.length; at += 100) {
      const filters = { organizationId: 'org', documentId: 'doc', notificationIds: ids.slice(at, at + 100), pageSize: 100 };
      const { body } = await system.call('notifications/get', filters);
      found.push(...(body.result?.data as { id: string }[]).map(({ id }) => id));
    }
    return found;
  };
  const stored = async (id: string) => (await storedOf([id])).length;
  const failure = ({ status, body }: HttpAnswer) => [status, body.error?.status];

  it('the broker: 503 quickly, services not ready but alive, and recovery by itself', async () => {
    expect((await add()).status).toBe(200);
    await broker.order('stop');
    await eventually(async () => (await add()).status === 503);
    const refusals = [await add(), await add(), await add()];
    expect(refusals.map(failure)).toEqual(refusals.map(() => [503, 'UNAVAILABLE']));
    // Not at the deadline. A busy machine delays some of them.
    expect(Math.min(...refusals.map(({ ms }) => ms))).toBeLessThan(TIMEOUT_MS / 2);
    const [refused] = refusals;
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
    const { gateway, users, notifications } = system.services;
    for (const service of [users, notifications]) {
      expect((await service.health('live')).status).toBe(200);
      await eventually(async () => (await service.health('ready')).status === 503);
    }
    // The gateway stays behind its load balancer: this 503 promises something, and that of a load balancer does not.
    const { status, body } = await gateway.health('ready');
    expect([status, body.status, body.away?.map(({ name }) => name)]).toEqual([200, 'ok', expect.arrayContaining(['broker'])]);
    expect(await gateway.metrics()).toContain('dependency_up{dependency="broker"} 0');
    await broker.order('start');
    await eventually(async () => (await add()).status === 200);
    for (const service of Object.values(system.services)) await service.untilReady();
    expect(await stored(refused.id)).toBe(0);
  });

  it('the broker, killed under load: every answer is true, and the system recovers', async () => {
    const answers: Awaited<ReturnType<typeof add>>[] = [];
    const end = keepCalling(16, 200, async () => answers.push(await add()));
    await eventually(() => answers.length > 200);
    await broker.order('kill');
    await eventually(() => answers.some(({ status }) => status === 503));
    await broker.order('start');
    const seen = answers.length;
    await eventually(() => answers.slice(seen).filter(({ status }) => status === 200).length > 50);
    await end();
    // Adds may work before reads do.
    for (const service of Object.values(system.services)) await service.untilReady();
    expect(new Set(answers.map(({ status }) => status))).toEqual(
      new Set(answers.some(({ status }) => status === 504) ? [200, 503, 504] : [200, 503]),
    );
    const { body } = await system.call('notifications/get', { organizationId: 'org', documentId: 'doc', pageSize: 1 });
    expect(body.result?.pageToken).toBeTruthy();
    const found = await storedOf(answers.map(({ id }) => id));
    const isStored = new Set(found);
    expect(found).toHaveLength(isStored.size);
    expect(
      answers.filter(({ id, status }) => (status === 200 && !isStored.has(id)) || (status === 503 && isStored.has(id))),
    ).toEqual([]);
  });

  it('the notifications service: 504 at the deadline, not executed afterwards, and recovery by itself', async () => {
    await system.services.notifications.stop();
    const unanswered: Awaited<ReturnType<typeof add>>[] = [];
    // A busy machine delays some of them.
    await eventually(async () => unanswered.push(await add()) && unanswered.at(-1)!.ms < TIMEOUT_MS + 1000);
    expect(unanswered.map(failure)).toEqual(unanswered.map(() => [504, 'DEADLINE_EXCEEDED']));
    expect(Math.min(...unanswered.map(({ ms }) => ms))).toBeGreaterThanOrEqual(TIMEOUT_MS - 50);
    await system.services.notifications.start();
    await eventually(async () => (await add()).status === 200);
    expect(await storedOf(unanswered.map(({ id }) => id))).toEqual([]);
  });

  it('the users service: adding notifications still works, and calls that need the users service get 503', async () => {
    await system.services.users.stop();
    expect((await add()).status).toBe(200);
    const data = notification({ organizationId: 'never seen', createOrganization: false });
    const answer = await system.call('notifications/add', data);
    expect([503, 504]).toContain(answer.status);

    // Without a call: an idle gateway notices both by itself.
    const { gateway } = system.services;
    await eventually(async () => (await gateway.health('ready')).body.away?.[0]?.name === 'users');
    expect((await gateway.health('ready')).status).toBe(200);
    expect(await gateway.metrics()).toContain('dependency_up{dependency="users"} 0');
    await system.services.users.start();
    await eventually(async () => (await gateway.health('ready')).body.away === undefined);
  });

  it('the users service: adds that need its answer get 503, and those of another key do not wait behind them', async () => {
    const other = await system.createKey();
    const ask = async () => {
      const start = performance.now();
      const data = notification({ documentId: `unknown ${number++}`, createDocument: false });
      return { ...(await system.call('notifications/add', data)), ms: performance.now() - start };
    };
    const addOfOther = async () => {
      const start = performance.now();
      const { status } = await system.call('notifications/add', notification(), other);
      return { status, ms: performance.now() - start };
    };
    expect((await addOfOther()).status).toBe(200);
    expect((await ask()).status).toBe(404);
    await system.services.users.stop();

    const asked: ReturnType<typeof ask>[] = [];
    const refused: Awaited<ReturnType<typeof ask>>[] = [];
    const end = keepCalling(1, 40, async () => {
      const question = ask();
      asked.push(question);
      void question.then((answer) => refused.push(answer));
    });
    await eventually(() => refused.length > 0);
    const others: Awaited<ReturnType<typeof addOfOther>>[] = [];
    await eventually(async () => {
      others.push(await addOfOther());
      return refused.length >= 100 && others.length >= 20;
    });
    await end();
    await Promise.all(asked);
    // One after the other, so a busy machine that stands still delays one. Behind the others most would wait.
    expect(others.filter(({ ms }) => ms > TIMEOUT_MS / 2).length).toBeLessThan(3);
    expect(others.filter(({ status }) => status !== 200)).toEqual([]);
    expect(refused.filter(({ status }) => status !== 503 && status !== 504)).toEqual([]);
    expect(refused.filter(({ status, headers }) => status === 503 && headers.get('retry-after') === null)).toEqual([]);
    // Most of them do not wait for an answer that does not come.
    expect(refused.filter(({ status, ms }) => status === 503 && ms < TIMEOUT_MS / 2).length).toBeGreaterThan(refused.length / 2);

    await system.services.users.start();
    // More at once than may be asked at once.
    await eventually(async () => {
      const answers = await Promise.all(Array.from({ length: 40 }, ask));
      return answers.every(({ status }) => status === 404);
    });
  });

  it('the users service, when a gateway starts: it is not ready until it had an answer, and then stays ready', async () => {
    await system.services.users.stop();
    const late = system.replica('gateway');
    await late.start({ untilReady: false });
    try {
      // The connection to the broker alone does not make it ready.
      await eventually(async () => (await late.health('ready')).body.checks?.broker === 'up');
      const { status, body } = await late.health('ready');
      expect([status, body.checks?.users, body.away]).toEqual([503, 'has not answered yet', undefined]);
      await system.services.users.start();
      await late.untilReady();
      await system.services.users.stop();
      await eventually(async () => (await late.health('ready')).body.away?.[0]?.name === 'users');
      expect((await late.health('ready')).status).toBe(200);
      const unknown = { 'x-svc-api-key': 'unknown', 'x-svc-auth-token': 'unknown' };
      const refused = await system.call('notifications/get', { organizationId: 'org', userId: 'ada' }, unknown, late.url);
      expect(failure(refused)).toEqual([503, 'UNAVAILABLE']);
      expect(refused.headers.get('retry-after')).toBe('1');
      const stopped = late.stop();
      await eventually(async () => (await late.health('ready').catch(() => ({ status: 503 }))).status === 503);
      expect(await stopped).toBe(0);
      await system.services.users.start();
    } finally {
      await late.stop('SIGKILL');
    }
  });
});
