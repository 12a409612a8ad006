import { Registry } from 'prom-client';
import { Authenticate } from '@app/contracts/users.authenticate';
import { createTestBroker, type TestBroker } from '@app/testing/broker/broker';
import { BrokerLinks } from '@app/testing/broker/broker-links';
import { eventually } from '@app/testing/eventually';
import { startUsersStub } from '@app/testing/system/users-stub';
import { RabbitClient } from '../src/client/rabbit.client';
import type { RabbitServer } from '../src/server/rabbit.server';
import { declareTopology } from '../src/topology/declare-topology';

/** Shorter than the 8 s after which a process leaves a node that is silent. */
const CALL = { apiKey: 'key', requestId: 'r', timeoutMs: 4000 };
const QUESTION = { apiKey: 'key', tokenHash: 'a'.repeat(64) };

/** A node that stands still keeps what it has delivered to its consumers, and takes their answers nowhere. */
describe('a broker node that stands still', () => {
  let broker: TestBroker;
  let links: BrokerLinks;
  let client: RabbitClient;
  let servers: RabbitServer[];
  let metrics: Registry;

  /** Each service prefers the node with one of these numbers, and has its standby queries at the last node of its order. */
  const start = async (...preferences: number[]) => {
    metrics = new Registry();
    const handlers = { add: () => ({}), exists: () => ({}), authenticate: () => ({ known: true }) };
    servers = await Promise.all(
      preferences.map((preference, number) =>
        startUsersStub(
          { connection: { url: links.url, name: `users ${number}`, preference }, metrics: new Registry() },
          handlers,
        ),
      ),
    );
    client = new RabbitClient({ connection: { url: broker.url, name: 'gateway' }, metrics });
    await client.connect();
    await eventually(() => [client, ...servers].every((one) => one.check() === undefined));
  };
  const ask = async (apiKey = 'key') => (await client.call(Authenticate, QUESTION, { ...CALL, apiKey })).parse();

  beforeEach(async () => {
    broker = await createTestBroker();
    links = await BrokerLinks.to(broker.url, 3);
    await declareTopology(broker.url);
  });
  afterEach(async () => {
    links.heal();
    await client?.close();
    await Promise.all(servers.map((server) => server.close()));
    await links.close();
    await broker.drop();
  });

  it('stops no query, although all processes consume there', async () => {
    // Both have the order 0, 1, 2.
    await start(0, 0);
    const [still, , other] = links.proxies;
    expect([still.openLinks, other.openLinks]).toEqual([6, 2]);
    still.stall();
    for (let call = 0; call < 5; call++) expect(await ask()).toEqual({ known: true });
    expect(still.openLinks).toBe(6);
  });

  it('stops no query, when one process consumes there, and another one has its standby queries there', async () => {
    // The orders 0, 1, 2 and 1, 2, 0.
    await start(0, 4);
    const [still] = links.proxies;
    expect(still.openLinks).toBe(4);
    still.stall();
    const answers = await Promise.all(Array.from({ length: 4 }, (_, number) => ask(`key ${number}`)));
    for (let call = 0; call < 6; call++) answers.push(await ask());
    expect(answers).toEqual(Array.from({ length: 10 }, () => ({ known: true })));
    expect(still.openLinks).toBe(4);
  });
});
