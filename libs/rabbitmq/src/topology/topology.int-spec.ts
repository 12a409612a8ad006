import { connect, createServer, type AddressInfo, type Server } from 'node:net';
import { pipeline } from 'node:stream';
import { Registry } from 'prom-client';
import { AddUsers } from '@app/contracts/users.add';
import { createTestBroker, type TestBroker } from '@app/testing/broker/broker';
import { BrokerLinks } from '@app/testing/broker/broker-links';
import { eventually } from '@app/testing/eventually';
import { requiredEnv } from '@app/testing/required-env';
import { startUsersStub } from '@app/testing/system/users-stub';
import type { FaultProxy } from '../../../../test/faults/harness/fault-proxy';
import { declareTopology } from './declare-topology';
import { openConnection } from '@app/amqp/connection/open-connection';
import { RabbitClient } from '../client/rabbit.client';
import { BINDINGS, crashedQueue, EXCHANGES, QUEUES } from './topology';

describe('declaring the topology', () => {
  let broker: TestBroker;

  beforeEach(async () => {
    broker = await createTestBroker();
  });
  afterEach(() => broker.drop());

  it('declares the topology, and changes nothing when it is repeated', async () => {
    await declareTopology(broker.url);
    await declareTopology(broker.url);
    const { queues, exchanges, bindings } = await broker.management.definitions();
    expect(queues.map(({ name }) => name).sort()).toEqual(QUEUES.map(({ name }) => name).sort());
    for (const { name, arguments: args } of QUEUES) {
      expect(queues.find((queue) => queue.name === name)).toMatchObject({ durable: true, arguments: args });
    }
    expect(exchanges.map(({ name, type, durable }) => ({ name, type, durable }))).toEqual(
      expect.arrayContaining(EXCHANGES.map(({ name, type }) => ({ name, type, durable: true }))),
    );
    expect(
      bindings.map(({ source, destination, routing_key: routingKey }) => ({ exchange: source, queue: destination, routingKey })),
    ).toEqual(expect.arrayContaining([...BINDINGS]));
    expect(bindings).toHaveLength(BINDINGS.length);
  });

  it('names what exists with other arguments', async () => {
    const model = await openConnection({ url: broker.url, name: 'test' });
    await (await model.createChannel()).assertQueue('users.queries', { arguments: { 'x-max-length': 5 } });
    await model.close();
    await expect(declareTopology(broker.url)).rejects.toThrow(/^the queue users\.queries exists with other settings/);
  });

  it('is needed for readiness: a service and a client become ready once it exists', async () => {
    const metrics = new Registry();
    const server = await startUsersStub(
      { connection: { url: broker.url, name: 'users' }, metrics },
      { add: () => ({ fine: true }), authenticate: () => ({}), exists: () => ({}) },
    );
    const client = new RabbitClient({ connection: { url: broker.url, name: 'gateway' }, metrics });
    await client.connect();
    try {
      await eventually(() => server.check() === 'the queue users.calls does not exist in the broker: run "npm run setup"');
      await eventually(() => client.check() === 'the exchange calls does not exist in the broker: run "npm run setup"');
      await declareTopology(broker.url);
      await eventually(() => server.check() === undefined && client.check() === undefined);
      const body = { organizationId: 'o', users: [{ userId: 'u' }] };
      const answer = await client.call(AddUsers, body, { apiKey: 'k', requestId: 'r', timeoutMs: 5000 });
      expect(answer.parse()).toEqual({ fine: true });
    } finally {
      await client.close();
      await server.close();
    }
  });

  it('is needed with the queue of commands that have ended their processes', async () => {
    await declareTopology(broker.url);
    const model = await openConnection({ url: broker.url, name: 'test' });
    await (await model.createChannel()).deleteQueue(crashedQueue('users'));
    await model.close();
    const handlers = { add: () => ({}), authenticate: () => ({}), exists: () => ({}) };
    const server = await startUsersStub({ connection: { url: broker.url, name: 'users' }, metrics: new Registry() }, handlers);
    const missing = 'the queue users.commands.crashed does not exist in the broker: run "npm run setup"';
    try {
      await eventually(() => server.check() === missing);
      await declareTopology(broker.url);
      await eventually(() => server.check() === undefined);
    } finally {
      await server.close();
    }
  });
});

describe('a broker that is not up', () => {
  it('is waited for, up to the given time', async () => {
    const broker = await createTestBroker();
    const url = new URL(broker.url);
    const target = { host: url.hostname, port: Number(url.port) };
    const forwarder = createServer((socket) => pipeline(socket, connect(target), socket, () => undefined));
    url.port = String(await listen(forwarder));
    await new Promise((resolve) => forwarder.close(resolve));
    await expect(declareTopology(url.href)).rejects.toThrow('ECONNREFUSED');

    const reasons: string[] = [];
    const onWait = (reason: string) => reasons.push(reason);
    const declared = declareTopology(url.href, { waitMs: 20_000, onWait });
    await eventually(() => reasons.length > 0);
    await listen(forwarder, Number(url.port));
    await declared;
    expect(reasons).toEqual([expect.stringContaining('ECONNREFUSED')]);
    await new Promise((resolve) => forwarder.close(resolve));
    await broker.drop();
  });
});

describe('one of several nodes', () => {
  /** A method frame, and the two numbers of queue.declare. */
  const QUEUE_DECLARE = Buffer.from([0, 50, 0, 10]);
  let broker: TestBroker;
  let links: BrokerLinks;

  beforeEach(async () => {
    broker = await createTestBroker();
    links = await BrokerLinks.to(broker.url, 3);
  });
  afterEach(async () => {
    await links.close();
    await broker.drop();
  });

  const queues = async () => (await broker.management.definitions()).queues;

  it('is enough: those that cannot be reached are not waited for', async () => {
    for (const proxy of links.proxies.slice(0, 2)) links.kill(proxy);
    await declareTopology(links.url);
    expect(await queues()).toHaveLength(QUEUES.length);
  });

  it('is named with its reason when none can be reached, without the password', async () => {
    for (const proxy of links.proxies) links.kill(proxy);
    const error = await declareTopology(links.url).then(
      () => undefined,
      (reason: unknown) => (reason as Error).message,
    );
    for (const proxy of links.proxies) expect(error).toMatch(new RegExp(`${links.address(proxy)}: .*ECONNRESET`));
    expect(error).not.toContain(decodeURIComponent(new URL(broker.url).password));
  });

  it('is followed by another one when it does not answer a declaration', async () => {
    const asked = new Set<FaultProxy>();
    for (const proxy of links.proxies) {
      proxy.inspector = (bytes, direction) => {
        if (direction === 'toServer' && bytes.includes(QUEUE_DECLARE)) asked.add(proxy);
        return asked.has(proxy) && asked.size < 3 ? 'hold' : 'pass';
      };
    }
    const started = performance.now();
    await declareTopology(links.url, { waitMs: 60_000, stepMs: 300 });
    // Sooner than the broker misses the heartbeats of two connections.
    expect(performance.now() - started).toBeLessThan(15_000);
    expect(asked.size).toBe(3);
    expect(await queues()).toHaveLength(QUEUES.length);
  });

  it('is named when it does not answer a declaration and there is no time left', async () => {
    for (const proxy of links.proxies)
      proxy.inspector = (bytes, direction) => (direction === 'toServer' && bytes.includes(QUEUE_DECLARE) ? 'hold' : 'pass');
    // Time for the steps before it on a busy machine.
    await expect(declareTopology(links.url, { stepMs: 2000 })).rejects.toThrow(
      /^127\.0\.0\.1:\d+: the check of queue .* took over 2 s$/,
    );
  });
});

const listen = (server: Server, port = 0) =>
  new Promise<number>((resolve) => server.listen(port, '127.0.0.1', () => resolve((server.address() as AddressInfo).port)));

describe('the program', () => {
  const { argv, env } = process;
  const { AMQP_URL } = env;
  let said: { log: string[]; error: string[] };

  beforeEach(() => {
    said = { log: [], error: [] };
    // Jest has a --json of its own.
    process.argv = argv.slice(0, 2);
    jest.spyOn(console, 'log').mockImplementation((text: string) => void said.log.push(text));
    jest.spyOn(console, 'error').mockImplementation((text: string) => void said.error.push(text));
  });

  afterEach(() => {
    process.exitCode = undefined;
    process.argv = argv;
    jest.restoreAllMocks();
    if (AMQP_URL === undefined) delete process.env.AMQP_URL;
    else process.env.AMQP_URL = AMQP_URL;
  });

  const run = async (url: string) => {
    process.env.AMQP_URL = url;
    // eslint-disable-next-line @typescript-eslint/no-require-imports -- it runs when it is loaded, so each time in a registry of its own
    jest.isolateModules(() => require('./declare-topology.main'));
    await eventually(() => said.log.length + said.error.length > 0);
    return process.exitCode;
  };

  it('declares, prints one line and exits 0', async () => {
    const broker = await createTestBroker();
    expect(await run(broker.url)).toBeUndefined();
    expect(said).toEqual({
      log: [`RabbitMQ has our ${EXCHANGES.length} exchanges, ${QUEUES.length} queues and ${BINDINGS.length} bindings.`],
      error: [],
    });
    await broker.drop();
  });

  it.each([
    ['', 'AMQP_URL is required: a URL that starts with amqp:// or amqps://'],
    ['https://user:secret@host/', 'AMQP_URL must be a URL that starts with amqp:// or amqps://'],
    [
      'amqp://user:secret@one,,two',
      'AMQP_URL has no valid host at place 2 of its list: it must be host or host:port, with brackets around IPv6',
    ],
    ['user:secret@host', 'AMQP_URL must be a URL that starts with amqp:// or amqps://'],
  ])('says what is wrong with %p, names the variable and exits 1', async (url, problem) => {
    expect(await run(url)).toBe(1);
    expect(said).toEqual({ log: [], error: [`The topology could not be declared in the broker of AMQP_URL: ${problem}`] });
  });

  it('does not wait for a wrong password to become right', async () => {
    const url = new URL(requiredEnv('TEST_AMQP_URL'));
    url.password = 'wrong-secret';
    expect(await run(url.href)).toBe(1);
    expect(said.error[0]).toMatch(/ACCESS_REFUSED/);
    expect(said.error[0]).not.toContain('wrong-secret');
  });
});
