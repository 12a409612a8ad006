import type { Channel } from 'amqplib';
import { PendingCalls } from './pending-calls';

describe(PendingCalls.name, () => {
  it('knows whether anything of a call was written, until the call has ended', async () => {
    const calls = new PendingCalls();
    const reply = { content: Buffer.from('{}'), headers: {} };
    const answered = calls.wait('a', 1000, () => new Error('late'));
    expect([calls.has('a'), calls.isUnwritten('a')]).toEqual([true, true]);
    calls.written([{ correlationId: 'a' }], undefined);
    expect(calls.isUnwritten('a')).toBe(true);
    calls.written([{ correlationId: 'a' }], {} as Channel);
    expect(calls.isUnwritten('a')).toBe(false);
    calls.resolve('a', reply);
    expect(await answered).toBe(reply);
    expect([calls.has('a'), calls.isUnwritten('a')]).toEqual([false, false]);
  });
});
