import { aDelivery } from '../../test/a-delivery';
import { Delivery } from './delivery';

describe(Delivery.name, () => {
  beforeEach(() => void jest.useFakeTimers());
  afterEach(() => void jest.useRealTimers());

  it.each([
    ['in 5 s', 5000, true],
    ['in ages', 2 ** 52, true],
    ['passed', -1, false],
  ])('waits for the broker to have its ack until its deadline: %s', async (_, msLeft, isForGood) => {
    let onAcked: (isForGood: boolean) => void = () => undefined;
    const acks = { ackForGood: () => new Promise<boolean>((resolve) => (onAcked = resolve)) };
    const waited = aDelivery({ awaited: true, deadline: Date.now() + msLeft }, { acks }).ackForGood();
    await jest.advanceTimersByTimeAsync(50);
    onAcked(true);
    expect(await waited).toBe(isForGood);
  });

  it('has ended a process when it comes again among the suspects, also where the broker does not count that', () => {
    expect(aDelivery({ redelivered: true }, { queue: { alone: true } }).crashes).toBe(1);
    expect(aDelivery({ redelivered: true }).crashes).toBe(0);
  });

  it.each([
    ['commands', true],
    ['queries', false],
  ] as const)('may have crashed its consumers after two returns, unless it can be asked again: %s', (kind, isSuspect) => {
    const delivery = aDelivery({ redelivered: true }, { queue: { kind } });
    Object.assign(delivery.message.fields, { redelivered: true });
    Object.assign(delivery.message.properties, { headers: { 'x-delivery-count': 2 } });
    expect(delivery.isSuspect).toBe(isSuspect);
  });

  it('waits less than the broker does for an ack (30 minutes), whatever deadline its publisher has invented', () => {
    expect(aDelivery({ awaited: true, deadline: Date.now() + 2 ** 40 }).patience).toBe(900_000);
  });
});
