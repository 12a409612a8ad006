import type { Message } from 'amqplib';
import { ReturnedReplies } from './returned-replies';

const FLOOD = 1000;

describe(ReturnedReplies, () => {
  let written: Message[];
  let ready: Promise<boolean>;
  let replies: ReturnedReplies;

  beforeEach(() => {
    jest.useFakeTimers();
    written = [];
    ready = Promise.resolve(true);
    replies = new ReturnedReplies(
      async (routingKey, { headers }, content) => written.push(aReply(routingKey, headers, content)),
      () => ready,
    );
  });
  afterEach(() => jest.useRealTimers());

  const aReply = (routingKey: string, headers: object = {}, content: Buffer = Buffer.alloc(10)) =>
    ({ fields: { exchange: 'replies', routingKey }, properties: { correlationId: 'c', headers }, content }) as unknown as Message;
  const flood = () => Array.from({ length: FLOOD }, (_, number) => replies.add(aReply(`nobody ${number}`)));
  /** Writes what waits, and returns all of it again, until nothing is left. */
  const returnAll = async () => {
    let count = 0;
    for (await jest.runAllTimersAsync(); written.length > 0; await jest.runAllTimersAsync()) {
      count += written.length;
      written.splice(0).forEach((reply) => replies.add(reply));
    }
    return count;
  };

  it('writes a reply again three times', async () => {
    replies.add(aReply('a caller'));
    expect(await returnAll()).toBe(3);
  });

  it('waits for a channel that is opened again', async () => {
    let open!: (isReady: boolean) => void;
    ready = new Promise((resolve) => (open = resolve));
    replies.add(aReply('a caller'));
    await jest.runAllTimersAsync();
    expect(written).toEqual([]);
    open(true);
    expect(await returnAll()).toBe(3);
  });

  it('waits for a broker that takes nothing for as long as a call of the gateway may take', async () => {
    const waits: number[] = [];
    const waiting = new ReturnedReplies(
      async () => undefined,
      async (timeoutMs) => waits.push(timeoutMs) > 0,
    );
    waiting.add(aReply('a caller'));
    await jest.runAllTimersAsync();
    expect(waits).toEqual([60_000]);
  });

  it('writes nothing without a channel, and keeps no count of what it drops', async () => {
    ready = Promise.resolve(false);
    flood();
    expect(await returnAll()).toBe(0);
    ready = Promise.resolve(true);
    flood();
    expect(await returnAll()).toBeGreaterThan(0);
  });

  it('survives a channel that is closing', async () => {
    const unhandled = jest.fn();
    process.on('unhandledRejection', unhandled);
    const refused = new ReturnedReplies(
      () => Promise.reject(new Error('Channel closing')),
      () => ready,
    );
    refused.add(aReply('a caller'));
    await jest.runAllTimersAsync();
    jest.useRealTimers();
    await new Promise(setImmediate);
    process.off('unhandledRejection', unhandled);
    expect(unhandled).not.toHaveBeenCalled();
  });

  it('writes few of those again that are for nobody, time after time', async () => {
    for (let time = 0; time < 2; time++) {
      flood();
      const again = await returnAll();
      expect(again).toBeGreaterThan(0);
      expect(again).toBeLessThan(FLOOD / 2);
    }
  });

  it('writes all of those again that are for callers of this system, beside a flood', async () => {
    replies.know('gateway');
    flood();
    for (let number = 0; number < FLOOD; number++) replies.add(aReply('gateway'));
    await jest.runAllTimersAsync();
    expect(written.filter(({ fields }) => fields.routingKey === 'gateway')).toHaveLength(FLOOD);
  });
});
