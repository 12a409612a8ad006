import { isDeepStrictEqual } from 'node:util';
import { Registry, type MetricObjectWithValues, type MetricValue } from 'prom-client';
import type { RabbitConnection } from '@app/amqp/connection/connection';
import { AddUsers, type AddUsersRequest } from '@app/contracts/users.add';
import { Authenticate } from '@app/contracts/users.authenticate';
import { createTestBroker, type TestBroker } from '@app/testing/broker/broker';
import { BrokerLinks } from '@app/testing/broker/broker-links';
import { eventually } from '@app/testing/eventually';
import { gate } from '@app/testing/gate';
import { startUsersStub, type UsersHandlers } from '@app/testing/system/users-stub';
import { RabbitClient } from '../src/client/rabbit.client';
import type { RabbitServer } from '../src/server/rabbit.server';
import { declareTopology } from '../src/topology/declare-topology';

const BODY: AddUsersRequest = { organizationId: 'o', users: [{ userId: 'u' }] };
const CALL = { apiKey: 'key', requestId: 'r', timeoutMs: 20_000 };
const MOVE_EVERY_MS = 200;

describe('connections whose node has returned', () => {
  let broker: TestBroker;
  let links: BrokerLinks;
  let client: RabbitClient;
  let server: RabbitServer;
  const handlers = {} as UsersHandlers;
  const metrics = new Registry();

  beforeAll(async () => {
    broker = await createTestBroker();
    links = await BrokerLinks.to(broker.url, 3);
    await declareTopology(broker.url);
    const connection = (name: string, preference: number) => ({ url: links.url, name, moveEveryMs: MOVE_EVERY_MS, preference });
    client = new RabbitClient({ connection: connection('gateway', 0), metrics });
    await client.connect();
    server = await startUsersStub({ connection: connection('users', 1), metrics }, handlers);
  });
  afterAll(async () => {
    await client?.close();
    await server?.close();
    await links?.close();
    await broker?.drop();
  });

  const ready = () => eventually(() => server.check() === undefined && client.check() === undefined);
  /** One connection of the client, two of the server, and the server's one for standby queries. */
  const areSpread = () => links.proxies.every(({ openLinks }, node) => openLinks === [1, 3, 1][node]);

  /** All connections are at the node that one side prefers, and the other nodes are back. */
  const gatherAt = async (side: 'client' | 'server') => {
    await ready();
    await eventually(areSpread);
    const left = links.proxies[side === 'client' ? 0 : 1];
    for (const proxy of links.proxies) if (proxy !== left) links.kill(proxy);
    await eventually(() => left.openLinks === 5);
    await ready();
    links.heal();
    return left;
  };

  it.each(['client', 'server'] as const)(
    'move back from the node of the %s, and no call fails, is lost or is executed twice',
    async (side) => {
      const executed: unknown[] = [];
      handlers.add = (_, { messageId }) => {
        executed.push(messageId);
        return { fine: true };
      };
      handlers.authenticate = () => ({ known: true });
      await gatherAt(side);

      let spread = false;
      let calls = 0;
      const outcomes = new Map<string, number>();
      const callOn = async (caller: number) => {
        for (let call = 0; !spread; call++) {
          calls++;
          const ask = client.call(Authenticate, { apiKey: 'key', tokenHash: 'a'.repeat(64) }, CALL);
          const add = client.call(AddUsers, BODY, { ...CALL, messageId: `${caller}-${call}` });
          for (const { status, reason } of (await Promise.allSettled([ask, add])) as PromiseRejectedResult[]) {
            const outcome = String(status === ('fulfilled' as string) ? 'fine' : reason);
            outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
          }
        }
      };
      const callers = Array.from({ length: 8 }, (_, caller) => callOn(caller));
      await eventually(areSpread).finally(() => (spread = true));
      await Promise.all(callers);
      expect(Object.fromEntries(outcomes)).toEqual({ fine: 2 * calls });
      expect(executed).toHaveLength(calls);
      expect(new Set(executed).size).toBe(calls);
    },
  );

  it('show the address that each of them prefers and misses, until it is back there, and no other that it has left', async () => {
    const connected = async () => {
      const { values } = (await metrics.getSingleMetric('rabbitmq_connected')!.get()) as MetricObjectWithValues<
        MetricValue<'connection' | 'address'>
      >;
      const nodes = links.proxies.map((proxy) => links.address(proxy));
      return values.map(({ labels, value }) => `${labels.connection} ${nodes.indexOf(String(labels.address))}: ${value}`).sort();
    };
    const AT_HOME = [
      ...['gateway calling 0: 1', 'users consuming 1: 1', 'users lanes 1: 1', 'users publishing 1: 1', 'users standby 2: 1'],
    ];
    const atHome = () => eventually(async () => isDeepStrictEqual(await connected(), AT_HOME));
    await ready();
    await atHome();
    const [first, ...others] = links.proxies;
    for (const proxy of others) links.kill(proxy);
    await eventually(() => first.openLinks === 5);
    await ready();
    const elsewhere = AT_HOME.slice(1).flatMap((one) => [one.replace(': 1', ': 0'), one.replace(/\d: 1/, '0: 1')]);
    expect(await connected()).toEqual([AT_HOME[0], ...elsewhere].sort());
    links.heal();
    await atHome();
  });

  it('say at once that the outcome of a command is unknown, and ask queries again, when the earlier node ends before their work', async () => {
    const { open: letGo, opened: gone } = gate();
    let [asked, added, isGone] = [0, 0, false];
    handlers.authenticate = async () => {
      asked++;
      if (!isGone) await gone;
      return { known: true };
    };
    handlers.add = async () => {
      added++;
      await gone;
    };
    const { connection } = client as unknown as { connection: RabbitConnection };
    await ready();
    await eventually(areSpread);
    // All connections gather at the third node.
    const [ofClient, ofServer, left] = links.proxies;
    for (const proxy of [ofClient, ofServer]) links.kill(proxy);
    await eventually(() => left.openLinks === 5);
    await ready();
    const add = client.call(AddUsers, BODY, CALL);
    // More than may be asked again because they are only slow.
    const asks = Array.from({ length: 12 }, () => client.call(Authenticate, { apiKey: 'key', tokenHash: 'a'.repeat(64) }, CALL));
    const outcomes = Promise.allSettled([add, ...asks]);
    await eventually(() => asked >= 12 && added === 1);
    links.heal();
    await eventually(() => links.nodeOf(connection) === ofClient && left.openLinks > 0);
    await ready();
    links.kill(left);
    isGone = true;
    letGo();
    const [unknown, ...answers] = await outcomes;
    expect(unknown).toMatchObject({
      reason: { status: 'DEADLINE_EXCEEDED', message: expect.stringContaining('the connection was lost') as string },
    });
    for (const answer of answers) expect(answer).toMatchObject({ value: { body: Buffer.from('{"known":true}') } });
    // Delivered again, and settled before the next test.
    await eventually(() => added > 1);
    links.heal();
  });

  it('ask a query again whose later copies went over the next connection, when that one ends and the earlier one stays', async () => {
    const COPIES = 4;
    const ask = () => client.call(Authenticate, { apiKey: 'key', tokenHash: 'a'.repeat(64) }, CALL);
    const { connection } = client as unknown as { connection: RabbitConnection };
    const [next] = links.proxies;
    /** @returns the answer; undefined when a busy machine was so slow that all copies went over the earlier connection */
    const askWhileMoving = async () => {
      let [asked, isAnswered, isOverNext] = [0, true, false];
      const { open: letGo, opened } = gate();
      handlers.authenticate = async () => {
        asked++;
        if (!isAnswered) await opened;
        return { known: true };
      };
      await ready();
      await eventually(areSpread);
      // From then on the service knows that all copies have room, and of these queries a tenth may be asked again.
      await Promise.all(Array.from({ length: 10 * COPIES }, ask));
      [asked, isAnswered] = [0, false];
      links.kill(next);
      await eventually(() => client.check() === undefined && links.nodeOf(connection) !== next);
      next.refusing = false;
      next.inspector = () => 'hold';
      await eventually(() => next.openLinks > 0);
      const answer = ask();
      await eventually(() => asked === 1);
      links.heal();
      next.inspector = (bytes, direction) => {
        isOverNext ||= direction === 'toServer' && bytes.includes(Authenticate.pattern);
        return 'pass';
      };
      await eventually(() => asked === COPIES);
      isAnswered = true;
      // Now nothing but the end of the next connection lets the caller ask again.
      if (isOverNext) links.kill(next);
      else letGo();
      const body = (await answer).parse();
      letGo();
      links.heal();
      return isOverNext ? body : undefined;
    };
    expect(await eventually(askWhileMoving)).toEqual({ known: true });
  });

  /** Commands run until they may finish. */
  const heldAdd = () => {
    let runs = 0;
    const { open: finish, opened: finished } = gate();
    handlers.add = async () => {
      runs++;
      await finished;
      return { fine: true };
    };
    return { runs: () => runs, finish };
  };

  it('get the answers of the earlier node also when the next one ends before them', async () => {
    const { runs, finish } = heldAdd();
    const { connection } = client as unknown as { connection: RabbitConnection };
    await gatherAt('server');
    const call = client.call(AddUsers, BODY, CALL);
    call.catch(() => undefined);
    await eventually(() => runs() === 1);
    const [next] = links.proxies;
    await eventually(() => links.nodeOf(connection) === next);
    await ready();
    // The client goes on at a third node, or at the earlier one.
    links.kill(next);
    await eventually(() => client.check() !== undefined, undefined, 1);
    await ready();
    finish();
    expect((await call).parse()).toEqual({ fine: true });
    expect(runs()).toBe(1);
    links.heal();
  });

  it('stay open at the earlier node for work that runs, which is executed once and answered', async () => {
    const { runs, finish } = heldAdd();
    const left = await gatherAt('client');
    const call = client.call(AddUsers, BODY, CALL);
    await eventually(() => runs() === 1);
    // The client's connection stays, and the earlier one of the consumer.
    await eventually(() => links.proxies[1].openLinks === 3 && left.openLinks === 2);
    finish();
    expect((await call).parse()).toEqual({ fine: true });
    await eventually(areSpread);
    expect(runs()).toBe(1);
    expect(server.check()).toBeUndefined();
  });
});
