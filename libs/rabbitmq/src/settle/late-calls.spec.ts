import { Logger } from '@nestjs/common';
import { PASSED } from '@app/amqp/calls/call-channels';
import { aDelivery } from '../../test/a-delivery';
import { LateCalls } from './late-calls';

describe(LateCalls.name, () => {
  const MINUTE_MS = 60_000;
  let warn: jest.SpiedFunction<Logger['warn']>;

  beforeEach(() => {
    jest.useFakeTimers();
    warn = jest.spyOn(Logger.prototype, 'warn').mockReturnValue();
  });
  afterEach(() => {
    jest.useRealTimers();
    jest.restoreAllMocks();
  });

  const late = (requestId: string, lateMs: number) =>
    aDelivery({ requestId, awaited: true, userId: 'gateway', deadline: Date.now() - lateMs });

  it('has one line a minute, with their number and the latest of them', () => {
    const calls = new LateCalls();
    for (const delivery of [late('a', 20), late('b', 600_000), late('c', 50)]) calls.count(delivery);
    expect(warn).not.toHaveBeenCalled();
    jest.advanceTimersByTime(MINUTE_MS);
    const line = {
      msg: 'calls came after their deadline, and were not carried out',
      calls: 3,
      lateMs: 600_000,
      requestId: 'b',
      publisher: 'gateway',
    };
    expect(warn.mock.calls).toEqual([[expect.objectContaining(line)]]);

    jest.advanceTimersByTime(MINUTE_MS);
    calls.count(late('d', 5));
    jest.advanceTimersByTime(MINUTE_MS);
    expect(warn.mock.calls.slice(1)).toEqual([[expect.objectContaining({ calls: 1, lateMs: 5, requestId: 'd' })]]);
  });

  it('does not count the first message of a channel', () => {
    new LateCalls().count(aDelivery({ requestId: 'first', awaited: true, userId: 'gateway', deadline: PASSED }));
    jest.advanceTimersByTime(MINUTE_MS);
    expect(warn).not.toHaveBeenCalled();
  });
});
