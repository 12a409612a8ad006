import type { Message } from 'amqplib';
import { ReturnedReplies } from './returned-replies';

const FLOOD = 1000;

describe(ReturnedReplies, () => {
  let written: Message[];
  let replies: ReturnedReplies;

  beforeEach(() => {
    jest.useFakeTimers();
    written = [];
    replies = new ReturnedReplies(async (routingKey, { headers }, content) => written.push(aReply(routingKey, headers, content)));
  });
  afterEach(() => jest.useRealTimers());

  const aReply = (routingKey: string, headers: object = {}, content: Buffer = Buffer.alloc(10)) =>
    ({ fields: { exchange: 'replies', routingKey }, properties: { correlationId: 'c', headers }, content }) as unknown as Message;
  const flood = () => Array.from({ length: FLOOD }, (_, number) => replies.add(aReply(`nobody ${number}`)));
  /** Writes what waits, and returns all of it again, until nothing is left. */
  const returnAll = () => {
    let count = 0;
    for (jest.runAllTimers(); written.length > 0; jest.runAllTimers()) {
      count += written.length;
      written.splice(0).forEach((reply) => replies.add(reply));
    }
    return count;
  };

  it('writes a reply again three times', () => {
    replies.add(aReply('a caller'));
    expect(returnAll()).toBe(3);
  });

  it('survives a channel that is closing', () => {
    const refused = Promise.reject(new Error('Channel closing'));
    const handled = jest.spyOn(refused, 'catch');
    new ReturnedReplies(() => refused).add(aReply('a caller'));
    jest.runAllTimers();
    expect(handled).toHaveBeenCalled();
  });

  it('writes few of those again that are for nobody, time after time', () => {
    for (let time = 0; time < 2; time++) {
      flood();
      const again = returnAll();
      expect(again).toBeGreaterThan(0);
      expect(again).toBeLessThan(FLOOD / 2);
    }
  });

  it('writes all of those again that are for callers of this system, beside a flood', () => {
    replies.know('gateway');
    flood();
    for (let number = 0; number < FLOOD; number++) replies.add(aReply('gateway'));
    jest.runAllTimers();
    expect(written.filter(({ fields }) => fields.routingKey === 'gateway')).toHaveLength(FLOOD);
  });
});
