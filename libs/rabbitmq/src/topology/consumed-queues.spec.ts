import { MOST_COMMANDS } from '@app/amqp/messages/command-format';
import { MAX_BODY_BYTES, MAX_QUERY_BYTES } from '@app/contracts/json';
import { consumedQueues } from './consumed-queues';
import { callQueue, LANES } from './topology';

const MEBIBYTE = 1024 * 1024;

const prefetchOfCalls = (commands: number) =>
  consumedQueues('users', ['commands'], commands).find(({ name }) => name === callQueue('users'))!.prefetch;

describe(consumedQueues.name, () => {
  it('lets a process hold 1024 calls at most, because each message may have several', () => {
    expect(prefetchOfCalls(10_000) * MOST_COMMANDS).toBe(1024);
  });

  it('takes as many messages of calls in a process that handles few commands: others behind them would have no turns', () => {
    expect(prefetchOfCalls(3)).toBe(prefetchOfCalls(10_000));
  });

  it('lets other services fill 321 MiB of a process at most, as docs/security.md says', () => {
    const queues = consumedQueues('notifications', ['commands', 'queries', 'events'], 256);
    const ofLanes = queues.filter(({ exchange }) => LANES.some((lane) => lane === exchange));
    const bytes = ofLanes.map(({ kind, prefetch }) => prefetch * (kind === 'queries' ? MAX_QUERY_BYTES : MAX_BODY_BYTES));
    expect(bytes.reduce((sum, most) => sum + most, 0)).toBe(321 * MEBIBYTE);
  });
});
