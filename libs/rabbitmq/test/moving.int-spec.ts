import { Registry } from 'prom-client';
import { AddUsers, type AddUsersRequest } from '@app/contracts/users.add';
import { Authenticate } from '@app/contracts/users.authenticate';
import type { RabbitConnection } from '@app/amqp/connection';
import { createTestBroker, type TestBroker } from '@app/testing/broker';
import { BrokerLinks } from '@app/testing/broker-links';
import { eventually } from '@app/testing/eventually';
import { startUsersStub, type UsersHandlers } from '@app/testing/users-stub';
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
    const connection = (name: string) => ({ url: links.url, name, moveEveryMs: MOVE_EVERY_MS });
    client = new RabbitClient({ connection: connection('gateway'), metrics });
    await client.connect();
    server = await startUsersStub({ connection: connection('users'), metrics }, handlers);
  });
  afterAll(async () => {
    await client?.close();
    await server?.close();
    await links?.close();
    await broker?.drop();
  });

  const ready = () => eventually(() => server.check() === undefined && client.check() === undefined);
  const areSpread = () => links.proxies.every(({ openLinks }) => openLinks === 1);

  /** All connections are at the node that one of the server's prefers, and the other nodes are back. */
  const gatherAt = async (name: 'consuming' | 'publishing') => {
    await ready();
    await eventually(areSpread);
    const left = links.nodeOf((server as unknown as Record<typeof name, RabbitConnection>)[name]);
    for (const proxy of links.proxies) if (proxy !== left) links.kill(proxy);
    await eventually(() => left.openLinks === 3);
    await ready();
    links.heal();
    return left;
  };

  it.each(['consuming', 'publishing'] as const)(
    'move back (all but the one for %s), and no call fails, is lost or is executed twice',
    async (name) => {
      const executed: unknown[] = [];
      handlers.add = (_, { messageId }) => {
        executed.push(messageId);
        return { fine: true };
      };
      handlers.authenticate = () => ({ known: true });
      await gatherAt(name);

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

  it('stay open at the earlier node for work that runs, which is executed once and answered', async () => {
    let runs = 0;
    let finish!: () => void;
    const finished = new Promise<void>((resolve) => (finish = resolve));
    handlers.add = async () => {
      runs++;
      await finished;
      return { fine: true };
    };
    const left = await gatherAt('publishing');
    const call = client.call(AddUsers, BODY, CALL);
    await eventually(() => runs === 1);
    await eventually(() => links.proxies.every(({ openLinks }) => openLinks > 0));
    // The earlier connections of the client and of the consumer.
    expect(left.openLinks).toBe(3);
    finish();
    expect((await call).parse()).toEqual({ fine: true });
    await eventually(areSpread);
    expect(runs).toBe(1);
    expect(server.check()).toBeUndefined();
  });
});
