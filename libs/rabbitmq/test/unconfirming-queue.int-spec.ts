import { Logger } from '@nestjs/common';
import type { Registry } from 'prom-client';
import { AddUsers } from '@app/contracts/users.add';
import { Authenticate } from '@app/contracts/users.authenticate';
import type { RabbitConnection } from '@app/amqp/connection/connection';
import { openConnection } from '@app/amqp/connection/open-connection';
import { allAnswered } from '@app/amqp/publishing/publisher';
import { BrokerLinks } from '@app/testing/broker/broker-links';
import { eventually } from '@app/testing/eventually';
import type { PrivateServer } from '@app/testing/system/private-server';
import { startUsersStub, type UsersHandlers } from '@app/testing/system/users-stub';
import { RabbitClient } from '../src/client/rabbit.client';
import { CALL, RecoveryBench } from './recovery-bench';
import { BODY, failure } from './stubbed-users';

/** Longer than a busy machine takes for a confirm. */
const UNCONFIRMED_MS = 3000;

describe('a queue that confirms nothing, as at a node in a minority with Khepri', () => {
  let bench: RecoveryBench;
  let broker: PrivateServer;
  let handlers: UsersHandlers;
  let metrics: Registry;
  let links: BrokerLinks;
  /** Name of each connection, and the address that it was made to. */
  let connected: [string, string][];
  let log: jest.SpyInstance;

  const suspended: string[] = [];
  const suspend = async (name: string) => {
    suspended.push(name);
    await broker.queues('suspend', name);
  };
  const resumeAll = async () => suspended.length > 0 && broker.queues('resume', ...suspended.splice(0));
  const addressesOf = (name: string) => connected.filter(([connection]) => connection === name).map(([, address]) => address);

  beforeAll(async () => {
    bench = await RecoveryBench.start();
    ({ broker, handlers, metrics } = bench);
  });
  afterAll(() => bench?.stop());
  beforeEach(async () => {
    links = await BrokerLinks.to(broker.url, 2);
    connected = [];
    log = jest.spyOn(Logger.prototype, 'log').mockImplementation((line: unknown) => {
      const { msg, connection, address } = line as { msg: string; connection: string; address: string };
      if (msg === 'connected to the broker') connected.push([connection, address]);
    });
  });
  afterEach(async () => {
    await resumeAll();
    log.mockRestore();
    await links.close();
  });

  it('calls go to another node, unless it is a queue of queries, which is on one node', async () => {
    const [reader, writer] = ['reader', 'writer'].map(
      (name, preference) => new RabbitClient({ connection: { url: links.url, name, preference }, metrics }),
    );
    const ask = () => reader.call(Authenticate, { apiKey: 'key', tokenHash: 'a'.repeat(64) }, CALL);
    try {
      await Promise.all([reader.connect(), writer.connect()]);
      handlers.add = () => ({ fine: true });
      handlers.authenticate = () => ({ known: true });
      await eventually(() => writer.call(AddUsers, BODY, CALL));
      await eventually(ask);
      await suspend('users.calls.queries');
      await ask();
      await suspend('users.calls');
      const sentAt = performance.now();
      const outcome = failure(writer.call(AddUsers, BODY, { ...CALL, timeoutMs: 20_000 }));
      await eventually(() => addressesOf('writer calling').length > 1);
      // The default of 8 s; timers may be a millisecond early.
      expect(performance.now() - sentAt).toBeGreaterThan(7900);
      const [before, after] = addressesOf('writer calling');
      expect(after).not.toBe(before);
      expect(addressesOf('reader calling')).toHaveLength(1);
      expect((await outcome).status).toBe('DEADLINE_EXCEEDED');
      await resumeAll();
      await eventually(() => writer.call(AddUsers, BODY, CALL));
    } finally {
      await Promise.all([reader.close(), writer.close()]);
    }
  });

  it('the time of an alarm says nothing about it', async () => {
    const writer = new RabbitClient({ connection: { url: links.url, name: 'writer', unconfirmedMs: UNCONFIRMED_MS }, metrics });
    const { connection } = writer as unknown as { connection: RabbitConnection };
    try {
      await writer.connect();
      handlers.add = () => ({ fine: true });
      await eventually(() => writer.call(AddUsers, BODY, CALL));
      await suspend('users.calls');
      await broker.order('memory alarm on');
      // The queue has its command, and the broker blocks the connection. The alarm lasts longer than a queue may confirm nothing.
      await failure(writer.call(AddUsers, BODY, { ...CALL, timeoutMs: 2 * UNCONFIRMED_MS }));
      expect(writer.state).toBe('blocked');
      const states: [string, number][] = [];
      connection.on('state', (state) => states.push([state, performance.now()]));
      await broker.order('memory alarm off');
      await eventually(() => addressesOf('writer calling').length > 1);
      const [[, endedAt], [state, leftAt]] = states;
      expect(state).toBe('down');
      expect(leftAt - endedAt).toBeGreaterThanOrEqual(UNCONFIRMED_MS);
    } finally {
      await writer.close();
    }
  });

  it('an alarm is known after a move, although nothing was published over the connection before', async () => {
    const mover = new RabbitClient({
      connection: { url: links.url, name: 'mover', moveEveryMs: 100 },
      calls: { as: 'gateway', messages: [AddUsers] },
      metrics,
    });
    const { connection } = mover as unknown as { connection: RabbitConnection };
    try {
      await mover.connect();
      await eventually(() => mover.check() === undefined);
      const node = links.nodeOf(connection);
      links.kill(node);
      await eventually(() => mover.check() === undefined && links.nodeOf(connection) !== node);
      await broker.order('memory alarm on');
      expect(mover.state).toBe('up');
      links.heal();
      await eventually(() => links.nodeOf(connection) === node, undefined, 1);
      expect(mover.state).toBe('blocked');
      await broker.order('memory alarm off');
      await eventually(() => mover.check() === undefined);
    } finally {
      await mover.close();
    }
  });

  it('all connections of an idle service go to another node', async () => {
    const other = await startUsersStub(
      // Without queries no connection is at another node on purpose.
      { connection: { url: links.url, name: 'other', unconfirmedMs: UNCONFIRMED_MS }, metrics, queues: ['commands'] },
      handlers,
    );
    const addresses = () => ['other consuming', 'other publishing'].map(addressesOf);
    try {
      await eventually(() => other.check() === undefined);
      const [[before]] = addresses();
      expect(addresses()).toEqual([[before], [before]]);
      await suspend('quorum.check');
      // Each goes on to another one when the next is suspended, too.
      await eventually(() => addresses().every(({ length }) => length >= 2));
      const [[, after]] = addresses();
      expect(after).not.toBe(before);
      expect(addresses().map((all) => all.slice(0, 2))).toEqual(Array.from({ length: 2 }, () => [before, after]));
      await resumeAll();
      await eventually(() => other.check() === undefined);
    } finally {
      await other.close();
    }
  });

  it('a channel is drained when it has an answer to each message, and not at the first refusal', async () => {
    const model = await openConnection({ url: broker.url, name: 'test' });
    const channel = await model.createConfirmChannel();
    await channel.assertQueue('slow', { arguments: { 'x-queue-type': 'quorum' } });
    await channel.assertQueue('full', {
      arguments: { 'x-queue-type': 'classic', 'x-max-length': 0, 'x-overflow': 'reject-publish' },
    });
    // The broker asks the leader of a quorum queue before the first message of a channel, and does nothing else meanwhile.
    channel.sendToQueue('slow', Buffer.from('{}'));
    await channel.waitForConfirms();
    await suspend('slow');
    const answers: string[] = [];
    const send = (queue: string) =>
      channel.sendToQueue(queue, Buffer.from('{}'), {}, (error) => answers.push(`${queue} ${error ? 'refuses' : 'confirms'}`));
    send('slow');
    send('full');
    const drained = allAnswered(channel).then(() => answers.push('drained'));
    await eventually(() => answers.length > 0);
    await channel.checkExchange('calls');
    expect(answers).toEqual(['full refuses']);
    await resumeAll();
    await drained;
    expect(answers).toEqual(['full refuses', 'slow confirms', 'drained']);
    await model.close();
  });
});
