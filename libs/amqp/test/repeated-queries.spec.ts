import { PATIENCE_MS, setUpQueries } from './set-up-queries';

describe('queries without an answer', () => {
  beforeEach(() => void jest.useFakeTimers());
  afterEach(() => void jest.useRealTimers());

  it('asks again three times, each after twice the time, because a consumer that stands still keeps what it was given', async () => {
    const { ask, sent, end, repeated } = setUpQueries();
    ask('a', { timeoutMs: 60_000, apiKey: 'key' });
    await end('first a', 'confirmed');
    for (const [waitMs, copy] of [
      [400, 'standby a~'],
      [800, 'standby a~~'],
      [1600, 'standby a~~~'],
    ] as const) {
      const before = sent().length;
      await jest.advanceTimersByTimeAsync(waitMs - 1);
      expect(sent()).toHaveLength(before);
      await jest.advanceTimersByTimeAsync(2);
      expect(sent().slice(before)).toEqual([copy]);
      await end(copy, 'confirmed');
    }
    await jest.advanceTimersByTimeAsync(50_000);
    expect(sent()).toHaveLength(4);
    expect(repeated).toEqual(['unanswered', 'unanswered', 'unanswered']);
  });

  it('asks again, too, what went to the standby exchange only, but nothing that its queue has not confirmed', async () => {
    const { queries, ask, sent, end } = setUpQueries();
    ask('a');
    await end('first a', 'returned');
    await end('standby a~', 'confirmed');
    ask('b');
    await jest.advanceTimersByTimeAsync(PATIENCE_MS);
    expect(sent()).toEqual(['first a', 'standby a~', 'standby b~', 'standby a~~']);
    expect(queries.answered('a~~')).toBe('a');
    await jest.advanceTimersByTimeAsync(499);
    expect(sent()).toHaveLength(4);
  });

  it('looks again later at what it may not ask again for now', async () => {
    const { queries, ask, sent } = setUpQueries();
    for (const id of ['a', 'b', 'c']) ask(id, { timeoutMs: 60_000, apiKey: 'slow' });
    await jest.advanceTimersByTimeAsync(PATIENCE_MS);
    expect(sent().slice(3)).toEqual(['standby a~', 'standby b~']);
    queries.answered('a');
    await jest.advanceTimersByTimeAsync(2 * PATIENCE_MS);
    expect(sent().slice(5)).toEqual(['standby c~']);
  });

  it('asks more of one key again while later copies are answered first, and counts none of these', async () => {
    const { queries, ask, sent, end } = setUpQueries();
    const ids = Array.from({ length: 12 }, (_, number) => `a${number}`);
    for (const [number, id] of ids.entries()) {
      ask(id, { timeoutMs: 60_000, apiKey: 'key' });
      await jest.advanceTimersByTimeAsync(PATIENCE_MS);
      expect(sent().at(-1)).toBe(`standby ${id}~`);
      await end(`standby ${id}~`, 'confirmed');
      // The service answers other queries, so the first queue is not away.
      const other = `other ${number}`;
      ask(other, { timeoutMs: 60_000, apiKey: 'key' });
      queries.answered(other);
      queries.answered(`${id}~`);
    }
    const before = sent().length;
    for (const id of ['b', 'c', 'd', 'e']) ask(id, { timeoutMs: 60_000, apiKey: 'key' });
    await jest.advanceTimersByTimeAsync(PATIENCE_MS);
    expect(sent().slice(before + 4)).toEqual(['standby b~', 'standby c~', 'standby d~', 'standby e~']);
  });

  it('keeps its limits while the first queue has a backlog, and the standby queue has none', async () => {
    const { queries, ask, sent, end, repeated } = setUpQueries();
    const askBehind = async (id: string) => {
      ask(`earlier ${id}`);
      await jest.advanceTimersByTimeAsync(10);
      ask(id, { timeoutMs: 60_000, apiKey: 'key' });
      await end(`first ${id}`, 'confirmed');
      await jest.advanceTimersByTimeAsync(PATIENCE_MS);
      queries.answered(`earlier ${id}`);
      const isAskedAgain = sent().at(-1) === `standby ${id}~`;
      if (isAskedAgain) await end(`standby ${id}~`, 'confirmed');
      queries.answered(isAskedAgain ? `${id}~` : id);
    };
    for (const id of ['a', 'b', 'c']) await askBehind(id);
    const before = sent().length;
    for (const id of ['d', 'e', 'f', 'g']) ask(id, { timeoutMs: 60_000, apiKey: 'key' });
    await jest.advanceTimersByTimeAsync(PATIENCE_MS);
    expect(sent().slice(before + 4)).toEqual(['standby d~', 'standby e~']);
    for (const id of ['d', 'e', 'f', 'g']) queries.answered(id);
    for (let number = 0; number < 20; number++) await askBehind(`later ${number}`);
    // Ten, and a tenth of the 50 queries less the two that found all ten.
    expect(repeated).toEqual(Array.from({ length: 14 }, () => 'unanswered'));
  });

  it('takes no query that was asked again on a new channel for a lost one because of answers before that', async () => {
    const { queries, ask, sent, end } = setUpQueries();
    for (const id of ['a', 'b', 'c', 'd']) ask(id, { timeoutMs: 60_000, apiKey: 'key' });
    await jest.advanceTimersByTimeAsync(10);
    ask('later', { timeoutMs: 60_000, apiKey: 'key' });
    queries.answered('later');
    await jest.advanceTimersByTimeAsync(10);
    queries.askAgain(['a', 'b', 'c', 'd']);
    await end('first a', 'confirmed');
    await jest.advanceTimersByTimeAsync(PATIENCE_MS);
    expect(sent().slice(9)).toEqual(['standby a~', 'standby b~']);
    await end('standby a~', 'confirmed');
    // The first queue is not away.
    ask('other');
    queries.answered('c');
    queries.answered('a~');
    for (const id of ['e', 'f', 'g']) ask(id, { timeoutMs: 60_000, apiKey: 'key' });
    await jest.advanceTimersByTimeAsync(PATIENCE_MS);
    expect(sent().slice(15)).toEqual(['standby other~', 'standby e~']);
  });

  it('looks again three times at what it has asked again on a new channel', async () => {
    const { queries, ask, sent, end } = setUpQueries();
    ask('a', { timeoutMs: 60_000 });
    const threeTimes = async () => {
      const before = sent().length;
      await end('first a', 'confirmed');
      for (const waitMs of [401, 801, 1601]) {
        await jest.advanceTimersByTimeAsync(waitMs);
        await end(sent().at(-1)!, 'confirmed');
      }
      await jest.advanceTimersByTimeAsync(10_000);
      return sent().slice(before);
    };
    expect(await threeTimes()).toEqual(['standby a~', 'standby a~~', 'standby a~~~']);
    queries.askAgain(['a']);
    expect(await threeTimes()).toEqual(['standby a~~~~', 'standby a~~~~~', 'standby a~~~~~~']);
  });

  it('looks again at a query whose standby copy failed', async () => {
    const { ask, sent, end, rejected } = setUpQueries();
    ask('a', { timeoutMs: 60_000 });
    await end('first a', 'confirmed');
    for (const [waitMs, copy, outcome] of [
      [401, 'standby a~', 'returned'],
      [801, 'standby a~~', 'nacked'],
      [1601, 'standby a~~~', 'nacked'],
    ] as const) {
      await jest.advanceTimersByTimeAsync(waitMs);
      expect(sent().at(-1)).toBe(copy);
      await end(copy, outcome);
    }
    await jest.advanceTimersByTimeAsync(50_000);
    expect(sent()).toHaveLength(4);
    expect(rejected).toEqual([]);
  });

  it('takes no standby copy that failed for one that a later copy has passed', async () => {
    const { queries, ask, sent, end } = setUpQueries();
    ask('earlier');
    ask('a', { timeoutMs: 60_000, apiKey: 'key' });
    await end('first a', 'confirmed');
    await jest.advanceTimersByTimeAsync(PATIENCE_MS);
    await end('standby a~', 'nacked');
    await jest.advanceTimersByTimeAsync(2 * PATIENCE_MS);
    await end('standby a~~', 'confirmed');
    queries.answered('earlier');
    queries.answered('a~~');
    const before = sent().length;
    for (const id of ['b', 'c', 'd']) ask(id, { timeoutMs: 60_000, apiKey: 'key' });
    await jest.advanceTimersByTimeAsync(PATIENCE_MS);
    expect(sent().slice(before)).toEqual(['first b', 'first c', 'first d', 'standby b~', 'standby c~']);
  });

  it('counts what helped while everything goes to the standby exchange, and not a slow answer to its first copy', async () => {
    const { queries, ask, sent, end } = setUpQueries();
    ask('x');
    await end('first x', 'returned');
    const askLate = async (id: string, answer: string) => {
      ask(id);
      await end(`standby ${id}~`, 'confirmed');
      await jest.advanceTimersByTimeAsync(PATIENCE_MS);
      const isAskedAgain = sent().at(-1) === `standby ${id}~~`;
      if (isAskedAgain) await end(`standby ${id}~~`, 'confirmed');
      queries.answered(answer);
      return isAskedAgain;
    };
    await end('standby x~', 'confirmed');
    for (let number = 0; number < 15; number++) expect(await askLate(`lost ${number}`, `lost ${number}~~`)).toBe(true);
    const slow: boolean[] = [];
    for (let number = 0; number < 15; number++) slow.push(await askLate(`slow ${number}`, `slow ${number}~`));
    expect(slow.filter(Boolean)).toHaveLength(11);
  });
});
