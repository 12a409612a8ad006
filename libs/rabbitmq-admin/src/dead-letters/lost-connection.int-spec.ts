import { openConnection } from '@app/amqp/connection/open-connection';
import { within } from '@app/runtime/within';
import { createTestBroker, type TestBroker } from '@app/testing/broker/broker';
import { declareTopology } from '@app/rabbitmq/topology/declare-topology';
import { CHANNEL_CLOSE_OK, FaultProxy } from '../../../../test/faults/harness/fault-proxy';
import { readCommandLine } from './command-line';
import { run } from './run';

const WAIT_MS = 20_000;

describe('a connection that is lost while a channel closes', () => {
  let broker: TestBroker;
  let proxy: FaultProxy;

  beforeAll(async () => {
    broker = await createTestBroker();
    await declareTopology(broker.url);
    proxy = await FaultProxy.to(broker.url);
  });
  afterAll(async () => {
    await proxy?.close();
    await broker?.drop();
  });

  const list = (model: Awaited<ReturnType<typeof openConnection>>) =>
    run(model, readCommandLine(['list', '--queue', 'users.commands.dead'])!, {
      print: () => undefined,
      note: () => undefined,
      audit: () => undefined,
      accounts: { own: 'own', services: new Set() },
      signal: new AbortController().signal,
    });

  // Nothing else keeps the process alive: a promise that never settles would end it without a word, and with exit code 0.
  it.each([1, 2, 3])('ends the tool, at close %d', async (last) => {
    let closed = 0;
    proxy.inspector = (bytes, direction) =>
      direction === 'toClient' && bytes.includes(CHANNEL_CLOSE_OK) && ++closed === last ? 'cut' : 'pass';
    const model = await openConnection({ url: proxy.through(broker.url), name: 'test' });
    const outcome = list(model);
    expect(await within(WAIT_MS, outcome)).toBe(true);
    expect(closed).toBe(last);
    // Nothing is left after the last one but the end of the connection.
    if (last < 3) await expect(outcome).rejects.toThrow();
    else expect(await outcome).toBe(true);
  });
});
