import type { ConsumeMessage } from 'amqplib';
import type { ConsumedQueue } from '../topology/consumed-queues';
import { Delivery, type Acks } from './delivery';
import { DeliveryContext } from './delivery-context';

const QUEUE: ConsumedQueue = { name: 'commands', kind: 'commands', exchange: 'commands', prefetch: 1 };
const MESSAGE = { content: Buffer.alloc(0), fields: {}, properties: {} } as ConsumeMessage;
const CONTEXT = { apiKey: 'key', pattern: 'p', requestId: 'r', awaited: true, redelivered: false, attempt: 1 };

describe(Delivery.name, () => {
  beforeEach(() => void jest.useFakeTimers());
  afterEach(() => void jest.useRealTimers());

  it.each([
    ['in 5 s', 5000, true],
    ['in ages', 2 ** 52, true],
    ['passed', -1, false],
  ])('waits for the broker to have its ack until its deadline: %s', async (_, msLeft, isForGood) => {
    let onAcked: (isForGood: boolean) => void = () => undefined;
    const acks = { ackForGood: () => new Promise<boolean>((resolve) => (onAcked = resolve)) } as Partial<Acks> as Acks;
    const context = new DeliveryContext({ ...CONTEXT, deadline: Date.now() + msLeft });
    const waited = new Delivery(QUEUE, MESSAGE, { context }, acks).ackForGood();
    await jest.advanceTimersByTimeAsync(50);
    onAcked(true);
    expect(await waited).toBe(isForGood);
  });
});
