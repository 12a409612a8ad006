import { Logger } from '@nestjs/common';
import { aDelivery } from '../../test/a-delivery';
import { PublisherLines } from './publisher-lines';

const MINUTE_MS = 60_000;

describe(PublisherLines.name, () => {
  let lines: { msg: string; publisher: string; messages?: number }[];
  let refusals: PublisherLines;

  const refuse = (userId: string, times: number) => {
    for (let time = 0; time < times; time++)
      refusals.write(aDelivery({ userId, pattern: 'users.exists.v1', awaited: true }), { reason: 'The body must be JSON.' });
  };
  const written = () => lines.splice(0).map(({ msg, publisher, messages }) => [msg, publisher, messages]);

  beforeEach(() => {
    jest.useFakeTimers();
    lines = [];
    jest.spyOn(Logger.prototype, 'warn').mockImplementation((line: (typeof lines)[number]) => void lines.push(line));
    refusals = new PublisherLines('refused a message', 'refused more messages of a publisher');
  });
  afterEach(() => {
    jest.restoreAllMocks();
    jest.useRealTimers();
  });

  it('gives a publisher 20 lines a minute and one for the rest, and another publisher its own', () => {
    refuse('flood', 1000);
    refuse('good', 2);
    const one = (publisher: string) => ['refused a message', publisher, undefined];
    expect(written()).toEqual([...Array.from({ length: 20 }, () => one('flood')), one('good'), one('good')]);
    jest.advanceTimersByTime(MINUTE_MS);
    expect(written()).toEqual([['refused more messages of a publisher', 'flood', 980]]);
    refuse('flood', 1);
    jest.advanceTimersByTime(MINUTE_MS);
    expect(written()).toEqual([one('flood')]);
  });
});
