import { PATIENCE_MS, setUpQueries } from '../../test/set-up-queries';
import { Queries } from './queries';

describe(Queries.name, () => {
  beforeEach(() => void jest.useFakeTimers());
  afterEach(() => void jest.useRealTimers());

  it('asks once while the broker confirms and answers come', async () => {
    const { queries, ask, sent, end, repeated } = setUpQueries();
    ask('a');
    await end('first a', 'confirmed');
    expect(queries.answered('a')).toBe('a');
    await jest.advanceTimersByTimeAsync(PATIENCE_MS);
    expect(sent()).toEqual(['first a']);
    expect(repeated).toEqual([]);
  });

  it('asks again at once what no queue took, and what was asked before it', async () => {
    const { queries, ask, sent, end, rejected } = setUpQueries();
    ask('a');
    await end('first a', 'confirmed');
    ask('b');
    await end('first b', 'returned');
    expect(sent()).toEqual(['first a', 'first b', 'standby a~', 'standby b~']);
    expect(queries.answered('b~')).toBe('b');
    ask('c');
    expect(sent().at(-1)).toBe('standby c~');
    expect(rejected).toEqual([]);
  });

  it('takes a missing confirm for a queue that hangs, when a later copy is confirmed', async () => {
    const { ask, sent, end, repeated } = setUpQueries();
    ask('a');
    await jest.advanceTimersByTimeAsync(PATIENCE_MS);
    ask('b');
    ask('c');
    expect(sent()).toEqual(['first a', 'standby a~', 'first b', 'first c']);
    await end('first c', 'confirmed');
    await end('standby a~', 'confirmed');
    ask('d');
    expect(sent().slice(4)).toEqual(['standby b~', 'standby d~']);
    expect(repeated).toEqual(['unanswered', 'unconfirmed', 'away']);
  });

  it('tries the first exchange again after 5 s, with one query that goes both ways, until that is answered', async () => {
    const { queries, ask, sent, end } = setUpQueries();
    ask('a');
    await end('first a', 'returned');
    queries.answered('a~');
    await jest.advanceTimersByTimeAsync(4000);
    ask('x');
    await end('standby x~', 'confirmed');
    queries.answered('x~');
    await jest.advanceTimersByTimeAsync(1000);
    ask('b');
    ask('c');
    expect(sent().slice(3)).toEqual(['first b', 'standby b~', 'standby c~']);
    await end('first b', 'confirmed');
    ask('d');
    expect(sent().at(-1)).toBe('standby d~');
    queries.answered('b');
    ask('e');
    expect(sent().at(-1)).toBe('first e');
  });

  it('asks again what is confirmed and not answered, but at most ten and a tenth of all', async () => {
    const { ask, copies, repeated } = setUpQueries();
    for (let number = 0; number < 50; number++) ask(String(number));
    for (const { end } of copies) end('confirmed');
    await jest.advanceTimersByTimeAsync(PATIENCE_MS);
    expect(repeated).toEqual(Array.from({ length: 10 }, () => 'unanswered'));
    for (let number = 50; number < 75; number++) ask(String(number));
    for (const { end } of copies) end('confirmed');
    await jest.advanceTimersByTimeAsync(PATIENCE_MS);
    expect(repeated).toHaveLength(12);
  });

  it('asks only two slow queries of one API key again at a time, and leaves the others to other keys', async () => {
    const { queries, ask, sent } = setUpQueries();
    for (const id of ['a', 'b', 'c', 'd']) ask(id, { timeoutMs: 5000, apiKey: 'slow' });
    ask('x', { timeoutMs: 5000, apiKey: 'other' });
    await jest.advanceTimersByTimeAsync(PATIENCE_MS);
    expect(sent().slice(5)).toEqual(['standby a~', 'standby b~', 'standby x~']);
    queries.answered('a');
    queries.forget('b');
    for (const id of ['e', 'f', 'g']) ask(id, { timeoutMs: 5000, apiKey: 'slow' });
    await jest.advanceTimersByTimeAsync(PATIENCE_MS);
    expect(sent().slice(11)).toEqual(['standby e~', 'standby f~']);
    // All of them end without an answer.
    queries.giveUp(['a', 'c', 'd', 'e', 'f', 'g', 'x'], 'stopped');
    for (const id of ['h', 'i', 'j']) ask(id, { timeoutMs: 5000, apiKey: 'slow' });
    await jest.advanceTimersByTimeAsync(PATIENCE_MS);
    expect(sent().slice(16)).toEqual(['standby h~', 'standby i~']);
  });

  it('takes a queue that only confirms for one that is away, when the standby copy is answered and no copy in it was', async () => {
    const { queries, ask, sent, end, repeated } = setUpQueries();
    ask('a');
    await end('first a', 'confirmed');
    await jest.advanceTimersByTimeAsync(PATIENCE_MS);
    ask('b');
    await end('first b', 'confirmed');
    queries.answered('a~');
    ask('c');
    expect(sent()).toEqual(['first a', 'standby a~', 'first b', 'standby b~', 'standby c~']);
    expect(repeated).toEqual(['unanswered', 'unanswered', 'away']);
  });

  it('takes a service that is slow for nothing else', async () => {
    const { queries, ask, sent, end } = setUpQueries();
    ask('a');
    await end('first a', 'confirmed');
    await jest.advanceTimersByTimeAsync(PATIENCE_MS);
    ask('b');
    await end('first b', 'confirmed');
    queries.answered('b');
    queries.answered('a~');
    ask('c');
    expect(sent()).toEqual(['first a', 'standby a~', 'first b', 'first c']);
  });

  it('does not take a full queue for one that is away', async () => {
    const { ask, sent, end } = setUpQueries();
    ask('a');
    await end('first a', 'nacked');
    ask('b');
    expect(sent()).toEqual(['first a', 'standby a~', 'first b']);
  });

  it('waits less for a queue that has refused, until it answers', async () => {
    const { queries, ask, sent, end } = setUpQueries();
    ask('a');
    await end('first a', 'nacked');
    ask('b');
    ask('c');
    await end('first b', 'confirmed');
    await jest.advanceTimersByTimeAsync(101);
    expect(sent()).toEqual(['first a', 'standby a~', 'first b', 'first c', 'standby b~', 'standby c~']);
    await jest.advanceTimersByTimeAsync(1);
    queries.answered('b');
    ask('d');
    await jest.advanceTimersByTimeAsync(PATIENCE_MS - 1);
    expect(sent().slice(6)).toEqual(['first d']);
  });

  it('asks everything again on a new channel, with the time that is left', async () => {
    const { queries, ask, copies, sent, end, rejected } = setUpQueries();
    ask('a');
    ask('b');
    queries.answered('b');
    await jest.advanceTimersByTimeAsync(300);
    await end('first a', 'lost');
    expect(rejected).toEqual([]);
    queries.askAgain(['a', 'b']);
    expect(sent()).toEqual(['first a', 'first b', 'first a']);
    expect(copies.at(-1)!.timeoutMs).toBe(4700);
    queries.giveUp(['a', 'a command'], 'no connection');
    expect(rejected).toEqual([['a', expect.objectContaining({ status: 'UNAVAILABLE' })]]);
    expect(queries.has('a')).toBe(false);
  });

  it('asks only the queries of an ended channel again, and forgets their earlier copies', async () => {
    const { queries, ask, copies, sent, end, rejected } = setUpQueries();
    ask('a');
    ask('b');
    await jest.advanceTimersByTimeAsync(PATIENCE_MS);
    const [earlier] = copies.filter(({ id }) => id === 'a~');
    queries.askAgain(['a', 'answered meanwhile']);
    expect(sent()).toEqual(['first a', 'first b', 'standby a~', 'standby b~', 'first a']);
    earlier.end('nacked');
    await jest.advanceTimersByTimeAsync(0);
    expect(rejected).toEqual([]);
    await end('first a', 'returned');
    // The earlier copy may be on the new channel, too, after a move.
    expect(sent().slice(5)).toEqual(['standby a~~']);
    await end('standby a~~', 'nacked');
    expect(rejected).toEqual([['a', expect.objectContaining({ status: 'UNAVAILABLE' })]]);
  });

  it('takes nothing from the answer to a copy that was sent before the loss of a channel', async () => {
    const { queries, ask, sent, end } = setUpQueries();
    ask('a');
    await jest.advanceTimersByTimeAsync(PATIENCE_MS);
    queries.askAgain(['a']);
    await end('first a', 'confirmed');
    queries.answered('a~');
    ask('b');
    expect(sent()).toEqual(['first a', 'standby a~', 'first a', 'first b']);
  });
});
