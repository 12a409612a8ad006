import { Socket } from 'node:net';
import type { ChannelModel, ConfirmChannel } from 'amqplib';
import { createTestBroker, type TestBroker } from '@app/testing/broker/broker';
import { internalsOfChannel, internalsOfConnection } from './amqplib-internals';
import { openConnection } from './connection/open-connection';

describe('beneath amqplib', () => {
  let broker: TestBroker;
  let model: ChannelModel;
  let channel: ConfirmChannel;
  beforeAll(async () => (broker = await createTestBroker()));
  afterAll(() => broker.drop());
  beforeEach(async () => {
    model = await openConnection({ url: broker.url, name: 'test' });
    channel = await model.createConfirmChannel();
  });
  afterEach(() => model.close().catch(() => undefined));

  it('a connection knows whether its socket is to be closed', async () => {
    expect(internalsOfConnection(model).expectSocketClose).toBe(false);
    await model.close();
    expect(internalsOfConnection(model).expectSocketClose).toBe(true);
  });

  it('a connection ends when its socket is destroyed', async () => {
    const { stream } = internalsOfConnection(model);
    expect(stream).toBeInstanceOf(Socket);
    const closed = new Promise((resolve) => model.once('close', resolve));
    stream.destroy(new Error('given up'));
    await closed;
  });

  it('a connection decodes every frame by one method, from the bytes that it has', async () => {
    const internals = internalsOfConnection(model);
    const receive = internals.recvFrame.bind(internals);
    const types: number[] = [];
    internals.recvFrame = () => {
      const [type] = internals.rest;
      const frame = receive();
      if (frame) types.push(type);
      return frame;
    };
    const { queue } = await channel.assertQueue('', { exclusive: true });
    const delivered = new Promise((resolve) => void channel.consume(queue, resolve, { noAck: true }));
    channel.publish('', queue, Buffer.from('body'));
    await delivered;
    // A method, a header and a body, by their numbers in AMQP 0-9-1.
    expect(types).toEqual(expect.arrayContaining([1, 2, 3]));
  });

  it('a channel sends a message by one method, and reports its confirm to the callback that was registered after it', async () => {
    const { queue } = await channel.assertQueue('', { exclusive: true });
    const internals = internalsOfChannel(channel);
    const confirmed = new Promise((resolve) => {
      internals.sendMessage(
        { exchange: '', routingKey: queue, mandatory: true },
        { messageId: 'm', headers: {} },
        Buffer.from('body'),
      );
      internals.pushConfirmCallback(resolve);
    });
    expect(await confirmed).toBeNull();
    const message = await channel.get(queue, { noAck: true });
    expect(message && [message.properties.messageId, message.content.toString()]).toEqual(['m', 'body']);
  });
});
