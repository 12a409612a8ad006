import { connect, createServer, type AddressInfo, type Socket } from 'node:net';
import type { ChannelModel } from 'amqplib';
import { createTestBroker, type TestBroker } from '@app/testing/broker/broker';
import { eventually } from '@app/testing/eventually';
import { destroySocket, openConnection, resetSocket } from './open-connection';

describe(openConnection.name, () => {
  let broker: TestBroker;
  let model: ChannelModel;

  beforeAll(async () => {
    broker = await createTestBroker();
    model = await openConnection({ url: broker.url, name: 'test' });
  });
  afterAll(async () => {
    await model?.close();
    await broker?.drop();
  });

  it('says that the broker refuses the virtual host', async () => {
    const opened = openConnection({ url: `${broker.url}-misspelt`, name: 'test' });
    await expect(opened).rejects.toThrow(
      'the broker refuses the virtual host: it does not exist or is down, the account has no rights there, or a limit of connections is reached',
    );
  });

  it('gets the confirm of 5 KB without delayed acknowledgements of TCP, which take 40 ms', async () => {
    const channel = await model.createConfirmChannel();
    // A transient queue in memory, so that the disk does not count.
    const { queue } = await channel.assertQueue('', { exclusive: true, arguments: { 'x-max-length': 10 } });
    const timeOf = async (bytes: number) => {
      const start = performance.now();
      await new Promise<void>((resolve, reject) =>
        channel.publish('', queue, Buffer.alloc(bytes), { mandatory: true }, (error) =>
          error ? reject(error as Error) : resolve(),
        ),
      );
      return performance.now() - start;
    };
    // A short message is one write, and is never delayed. Alternating, so that a machine that is slow for a while affects both.
    const longer: number[] = [];
    for (let round = 0; round < 41; round++) longer.push((await timeOf(5000)) - (await timeOf(10)));
    expect(longer.sort((a, b) => a - b)[20]).toBeLessThan(20);
  });
});

/** Bytes that arrive at a peer that reads nothing until the connection has ended here. */
async function arrivedAfter(end: (model: ChannelModel) => void): Promise<number> {
  let peer: Socket | undefined;
  const server = createServer({ pauseOnConnect: true }, (socket) => (peer = socket)).listen(0, '127.0.0.1');
  await eventually(() => server.listening);
  const stream = connect((server.address() as AddressInfo).port, '127.0.0.1').on('error', () => undefined);
  try {
    stream.write(Buffer.alloc(32 * 1024 * 1024));
    await eventually(() => peer !== undefined && !stream.connecting);
    end({ connection: { stream } } as unknown as ChannelModel);
    await eventually(() => stream.closed);
    let bytes = 0;
    const closed = new Promise<void>((resolve) => peer!.on('close', () => resolve()));
    peer!
      .on('error', () => undefined)
      .on('data', (data) => (bytes += data.length))
      .resume();
    await closed;
    return bytes;
  } finally {
    server.close();
  }
}

it('sends nothing more of what was written when it resets a connection', async () => {
  expect(await arrivedAfter((model) => resetSocket(model, 'test'))).toBeLessThan(
    await arrivedAfter((model) => destroySocket(model, 'test')),
  );
});
