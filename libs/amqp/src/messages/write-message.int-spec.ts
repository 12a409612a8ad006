import { setFlagsFromString } from 'node:v8';
import { runInThisContext } from 'node:vm';
import type { ChannelModel, ConfirmChannel, GetMessage, Options } from 'amqplib';
import { createTestBroker, type TestBroker } from '@app/testing/broker/broker';
import { messageProperties } from './message-properties';
import { openConnection } from '../connection/open-connection';
import { writeMessage } from './write-message';

describe(writeMessage.name, () => {
  let broker: TestBroker;
  let model: ChannelModel;
  let channel: ConfirmChannel;
  let queue: string;

  beforeAll(async () => {
    broker = await createTestBroker();
    model = await openConnection({ url: broker.url, name: 'test' });
    channel = await model.createConfirmChannel();
    ({ queue } = await channel.assertQueue('', { exclusive: true }));
  });
  afterAll(async () => {
    await model?.close();
    await broker?.drop();
  });

  const target = () => ({ exchange: '', routingKey: queue, mandatory: true });
  const written = (properties: Options.Publish, to = target()) =>
    new Promise<Error | null>((resolve) => writeMessage(channel, to, properties, Buffer.from('body'), resolve));
  const published = (properties: Options.Publish) =>
    new Promise<Error | null>((resolve) => channel.publish('', queue, Buffer.from('body'), properties, resolve));
  const taken = async () => (await channel.get(queue, { noAck: true })) as GetMessage;

  const PROPERTIES: Options.Publish = {
    persistent: true,
    contentType: 'application/json',
    contentEncoding: 'identity',
    headers: { text: 'ä', yes: true, number: 5, moment: Date.now(), nested: { list: [1, 'two'] }, nothing: undefined },
    correlationId: 'correlation',
    replyTo: 'somebody',
    expiration: 60_000,
    messageId: 'message',
    timestamp: 1_700_000_000,
    type: 'kind',
    userId: 'account',
    appId: 'app',
  };

  it.each<[string, Options.Publish]>([
    ['every property', PROPERTIES],
    ['a transient message', { persistent: false, headers: {} }],
    ['properties that are undefined', { persistent: true, headers: {}, messageId: undefined, expiration: undefined }],
  ])('writes %s as amqplib does', async (_, properties) => {
    // The broker refuses any other user_id.
    const userId = properties.userId && new URL(broker.url).username;
    expect(await published({ ...properties, userId })).toBeNull();
    expect(await written({ ...properties, userId })).toBeNull();
    const [theirs, ours] = [await taken(), await taken()];
    expect(ours.properties).toEqual(theirs.properties);
    expect(ours.content).toEqual(theirs.content);
  });

  it('gets a mandatory message without a queue returned before the confirm', async () => {
    const order: string[] = [];
    channel.once('return', () => order.push('returned'));
    await written({}, { ...target(), routingKey: 'nobody', mandatory: false }).then(() => order.push('confirmed'));
    await written({}, { ...target(), routingKey: 'nobody' }).then(() => order.push('confirmed'));
    expect(order).toEqual(['confirmed', 'returned', 'confirmed']);
  });

  it('writes nothing on a closed channel', async () => {
    const closed = await model.createConfirmChannel();
    await closed.close();
    expect(() => writeMessage(closed, target(), {}, Buffer.from('body'))).toThrow(/closed/i);
  });

  it('makes V8 use one hidden class for the properties of all messages, and one for their headers', async () => {
    const sent = jest.spyOn(channel as unknown as { sendMessage(method: object, properties: object): boolean }, 'sendMessage');
    const operation = { kind: 'command', pattern: 'x' } as const;
    const sender = { appId: 'test', userId: new URL(broker.url).username };
    // V8 optimizes only code that runs often: separate classes appear from about the tenth message.
    for (let n = 0; n < 100; n++)
      await written(
        messageProperties(operation, { requestId: `r${n}`, apiKey: 'k' }, sender, `c${n}`, { replyTo: 'q', timeoutMs: 1000 }),
      );
    const [one, other] = sent.mock.calls.slice(-2).map(([, properties]) => properties as { headers: object });
    sent.mockRestore();
    expect(haveOneClass(one, other)).toBe(true);
    expect(haveOneClass(one.headers, other.headers)).toBe(true);
  });
});

/** Asks V8 itself. The native function exists only after the flag is set, and V8 reads the flag when it compiles the call. */
function haveOneClass(one: object, other: object): unknown {
  setFlagsFromString('--allow-natives-syntax');
  try {
    return (runInThisContext('(one, other) => %HaveSameMap(one, other)') as (one: object, other: object) => boolean)(one, other);
  } finally {
    setFlagsFromString('--no-allow-natives-syntax');
  }
}
