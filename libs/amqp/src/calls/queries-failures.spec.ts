import { ApiError } from '@app/contracts/error';
import { PATIENCE_MS, setUpQueries } from '../../test/set-up-queries';

describe('queries that fail', () => {
  beforeEach(() => void jest.useFakeTimers());
  afterEach(() => void jest.useRealTimers());

  const refused: unknown = expect.objectContaining({ status: 'UNAVAILABLE' });

  it('fails when no copy is left', async () => {
    const { ask, end, rejected } = setUpQueries();
    ask('a');
    await end('first a', 'returned');
    expect(rejected).toEqual([]);
    await end('standby a~', 'nacked');
    expect(rejected).toEqual([['a', refused]]);
    expect(rejected[0][1]).toBeInstanceOf(ApiError);
  });

  it('waits for the other copy when one fails', async () => {
    const { queries, ask, end, rejected } = setUpQueries();
    ask('a');
    await end('first a', 'confirmed');
    await jest.advanceTimersByTimeAsync(PATIENCE_MS);
    await end('standby a~', 'nacked');
    expect(rejected).toEqual([]);
    expect(queries.answered('a')).toBe('a');
  });

  it('without a standby exchange fails what no queue took', async () => {
    const { ask, sent, end, rejected } = setUpQueries('');
    ask('a');
    await end('first a', 'confirmed');
    await jest.advanceTimersByTimeAsync(PATIENCE_MS);
    ask('b');
    await end('first b', 'returned');
    ask('c');
    expect(sent()).toEqual(['first a', 'first b', 'first c']);
    expect(rejected).toEqual([['b', refused]]);
  });

  it('refuses what has less than a millisecond left', async () => {
    const { ask, sent, rejected } = setUpQueries();
    ask('a', { timeoutMs: 0.5 });
    expect(sent()).toEqual([]);
    expect(rejected).toEqual([['a', refused]]);
  });

  it('gives queries up when the standby queue confirms nothing either, and tries it with the next ones', async () => {
    const { queries, ask, sent, end, rejected } = setUpQueries();
    ask('a');
    await end('first a', 'returned');
    ask('b');
    await jest.advanceTimersByTimeAsync(900);
    expect(rejected).toEqual([]);
    // For the iteration of the event loop that follows.
    await jest.advanceTimersByTimeAsync(1);
    expect(rejected).toEqual([
      ['a', refused],
      ['b', refused],
    ]);
    for (const id of ['c', 'd', 'e']) ask(id);
    await jest.advanceTimersByTimeAsync(0);
    expect(rejected.slice(2)).toEqual([['e', refused]]);
    await end('standby a~', 'confirmed');
    ask('f');
    expect(sent().slice(1)).toEqual(['standby a~', 'standby b~', 'standby c~', 'standby d~', 'standby f~']);
    expect(queries.has('f')).toBe(true);
  });

  it('waits for a slow answer of the first queue while that one answers others', async () => {
    const { queries, ask, end, rejected } = setUpQueries();
    ask('a');
    await end('first a', 'confirmed');
    await jest.advanceTimersByTimeAsync(PATIENCE_MS);
    ask('b');
    await end('first b', 'confirmed');
    expect(queries.answered('b')).toBe('b');
    await jest.advanceTimersByTimeAsync(3000);
    expect(rejected).toEqual([]);
    expect(queries.answered('a')).toBe('a');
  });

  it('gives queries up that the first queue confirms and nobody answers, while the standby queue confirms nothing', async () => {
    const { ask, end, sent, rejected } = setUpQueries();
    ask('a');
    await end('first a', 'confirmed');
    await jest.advanceTimersByTimeAsync(PATIENCE_MS + 901);
    expect(rejected).toEqual([['a', refused]]);
    for (const id of ['b', 'c', 'd', 'e']) ask(id);
    await jest.advanceTimersByTimeAsync(0);
    expect(sent().slice(1)).toEqual(['standby a~', 'standby b~', 'standby c~', 'standby d~']);
    expect(rejected.slice(1)).toEqual([['e', refused]]);
  });

  it('gives up, while the standby queue confirms nothing, what the first queue does not confirm and may not be asked again', async () => {
    const { ask, sent, rejected } = setUpQueries();
    const ids = Array.from({ length: 12 }, (_, number) => `a${number}`);
    for (const id of ids) ask(id);
    await jest.advanceTimersByTimeAsync(PATIENCE_MS);
    expect(sent().filter((copy) => copy.startsWith('standby'))).toHaveLength(10);
    await jest.advanceTimersByTimeAsync(901);
    expect(rejected.map(([id]) => id)).toEqual(ids);
  });
});
