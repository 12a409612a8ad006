import { MOST_COMMANDS } from '@app/amqp/messages/command-format';
import { consumedQueues } from './consumed-queues';
import { callQueue } from './topology';

const prefetchOfCalls = (commands: number) =>
  consumedQueues('users', ['commands'], commands).find(({ name }) => name === callQueue('users'))!.prefetch;

describe(consumedQueues.name, () => {
  it('lets a process hold 1024 calls at most, because each message may have several', () => {
    expect(prefetchOfCalls(10_000) * MOST_COMMANDS).toBe(1024);
  });

  it('takes no more messages of calls than commands are wanted', () => {
    expect(prefetchOfCalls(3)).toBe(3);
  });
});
