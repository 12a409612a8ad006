import { Logger } from '@nestjs/common';
import type { ConsumeMessage } from 'amqplib';
import { Delivery, type Acks } from '../delivery/delivery';
import { DeliveryContext } from '../delivery/delivery-context';
import type { ConsumedQueue } from '../topology/consumed-queues';
import { RefusalLines } from './refusal-lines';

const QUEUE: ConsumedQueue = { name: 'users.queries.0', kind: 'queries', exchange: 'commands', prefetch: 64 };
const MINUTE_MS = 60_000;

describe(RefusalLines.name, () => {
  let lines: { msg: string; publisher: string; messages?: number }[];
  let refusals: RefusalLines;

  const refuse = (userId: string, times: number) => {
    const envelope = { requestId: 'r', awaited: true, redelivered: false, attempt: 1, apiKey: 'key', pattern: 'users.exists.v1' };
    const context = new DeliveryContext({ ...envelope, userId });
    const message = { content: Buffer.from('{'), fields: {}, properties: {} } as ConsumeMessage;
    for (let time = 0; time < times; time++)
      refusals.write(new Delivery(QUEUE, message, { context }, {} as Acks), 'The body must be JSON.');
  };
  const written = () => lines.splice(0).map(({ msg, publisher, messages }) => [msg, publisher, messages]);

  beforeEach(() => {
    jest.useFakeTimers();
    lines = [];
    jest.spyOn(Logger.prototype, 'warn').mockImplementation((line: (typeof lines)[number]) => void lines.push(line));
    refusals = new RefusalLines();
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
