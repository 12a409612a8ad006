import { ApiError } from '@app/contracts/error';
import type { RepetitionReason } from '../connection/observer';
import type { PublishOutcome } from '../publishing/publisher';
import { Queries } from './queries';

const OPERATION = { kind: 'query', pattern: 'users.exists.v1' } as const;
const OPTIONS = { requestId: 'r', timeoutMs: 5000 };
/** One millisecond more, for the iteration of the event loop that follows. */
const PATIENCE_MS = 401;

interface Copy {
  exchange: string;
  id: string;
  timeoutMs: number;
  end: (outcome: PublishOutcome) => void;
}

/** The broker's side is the test: it ends each publication as it wants. */
function setUp(standby: '' | 'standby' = 'standby') {
  const copies: Copy[] = [];
  const rejected: [string, Error][] = [];
  const repeated: RepetitionReason[] = [];
  const queries = new Queries(
    {
      publish: (exchange, _, id, timeoutMs) =>
        new Promise<PublishOutcome>((end) => copies.push({ exchange, id, timeoutMs, end })),
      reject: (id, error) => rejected.push([id, error]),
      repeated: (_, reason) => repeated.push(reason),
    },
    'first',
    standby || undefined,
  );
  const ask = (id: string, { timeoutMs, apiKey }: { timeoutMs: number; apiKey?: string } = OPTIONS) => {
    const deadline = performance.now() + timeoutMs;
    const options = { ...OPTIONS, apiKey };
    queries.ask({ operation: OPERATION, body: Buffer.from('{}'), options, correlationId: id, deadline });
  };
  const sent = () => copies.map(({ exchange, id }) => `${exchange} ${id}`);
  /** Ends the newest publication of this name. */
  const end = async (name: string, outcome: PublishOutcome) => {
    copies.findLast(({ exchange, id }) => `${exchange} ${id}` === name)!.end(outcome);
    await jest.advanceTimersByTimeAsync(0);
  };
  return { queries, copies, rejected, repeated, ask, sent, end };
}

describe(Queries.name, () => {
  beforeEach(() => void jest.useFakeTimers());
  afterEach(() => void jest.useRealTimers());

  it('asks once while the broker confirms and answers come', async () => {
    const { queries, ask, sent, end, repeated } = setUp();
    ask('a');
    await end('first a', 'confirmed');
    expect(queries.answered('a')).toBe('a');
    await jest.advanceTimersByTimeAsync(PATIENCE_MS);
    expect(sent()).toEqual(['first a']);
    expect(repeated).toEqual([]);
  });

  it('asks again at once what no queue took, and what was asked before it', async () => {
    const { queries, ask, sent, end, rejected } = setUp();
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
    const { ask, sent, end, repeated } = setUp();
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
    const { queries, ask, sent, end } = setUp();
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
    const { ask, copies, repeated } = setUp();
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
    const { queries, ask, sent } = setUp();
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
    queries.giveUp('stopped');
    for (const id of ['h', 'i', 'j']) ask(id, { timeoutMs: 5000, apiKey: 'slow' });
    await jest.advanceTimersByTimeAsync(PATIENCE_MS);
    expect(sent().slice(16)).toEqual(['standby h~', 'standby i~']);
  });

  it('asks again three times, each after twice the time, because a consumer that stands still keeps what it was given', async () => {
    const { ask, sent, end, repeated } = setUp();
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
    const { queries, ask, sent, end } = setUp();
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
    const { queries, ask, sent } = setUp();
    for (const id of ['a', 'b', 'c']) ask(id, { timeoutMs: 60_000, apiKey: 'slow' });
    await jest.advanceTimersByTimeAsync(PATIENCE_MS);
    expect(sent().slice(3)).toEqual(['standby a~', 'standby b~']);
    queries.answered('a');
    await jest.advanceTimersByTimeAsync(2 * PATIENCE_MS);
    expect(sent().slice(5)).toEqual(['standby c~']);
  });

  it('asks more of one key again while later copies are answered first, and counts none of these', async () => {
    const { queries, ask, sent, end } = setUp();
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
    const { queries, ask, sent, end, repeated } = setUp();
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
    const { queries, ask, sent, end } = setUp();
    for (const id of ['a', 'b', 'c', 'd']) ask(id, { timeoutMs: 60_000, apiKey: 'key' });
    await jest.advanceTimersByTimeAsync(10);
    ask('later', { timeoutMs: 60_000, apiKey: 'key' });
    queries.answered('later');
    await jest.advanceTimersByTimeAsync(10);
    queries.askAgain();
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

  it('looks again at a query whose standby copy failed', async () => {
    const { ask, sent, end, rejected } = setUp();
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
    const { queries, ask, sent, end } = setUp();
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
    const { queries, ask, sent, end } = setUp();
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

  it('takes a queue that only confirms for one that is away, when the standby copy is answered and no copy in it was', async () => {
    const { queries, ask, sent, end, repeated } = setUp();
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
    const { queries, ask, sent, end } = setUp();
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
    const { ask, sent, end } = setUp();
    ask('a');
    await end('first a', 'nacked');
    ask('b');
    expect(sent()).toEqual(['first a', 'standby a~', 'first b']);
  });

  it('waits less for a queue that has refused, until it answers', async () => {
    const { queries, ask, sent, end } = setUp();
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

  it('fails when no copy is left', async () => {
    const { ask, end, rejected } = setUp();
    ask('a');
    await end('first a', 'returned');
    expect(rejected).toEqual([]);
    await end('standby a~', 'nacked');
    expect(rejected).toEqual([['a', expect.any(ApiError)]]);
    expect(rejected[0][1]).toMatchObject({ status: 'UNAVAILABLE' });
  });

  it('waits for the other copy when one fails', async () => {
    const { queries, ask, end, rejected } = setUp();
    ask('a');
    await end('first a', 'confirmed');
    await jest.advanceTimersByTimeAsync(PATIENCE_MS);
    await end('standby a~', 'nacked');
    expect(rejected).toEqual([]);
    expect(queries.answered('a')).toBe('a');
  });

  it('gives queries up when the standby queue confirms nothing either, and tries it with the next ones', async () => {
    const { queries, ask, sent, end, rejected } = setUp();
    ask('a');
    await end('first a', 'returned');
    ask('b');
    await jest.advanceTimersByTimeAsync(900);
    expect(rejected).toEqual([]);
    // For the iteration of the event loop that follows.
    await jest.advanceTimersByTimeAsync(1);
    const refused = expect.objectContaining({ status: 'UNAVAILABLE' });
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
    const { queries, ask, end, rejected } = setUp();
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
    const { ask, end, sent, rejected } = setUp();
    ask('a');
    await end('first a', 'confirmed');
    await jest.advanceTimersByTimeAsync(PATIENCE_MS + 901);
    const refused = expect.objectContaining({ status: 'UNAVAILABLE' });
    expect(rejected).toEqual([['a', refused]]);
    for (const id of ['b', 'c', 'd', 'e']) ask(id);
    await jest.advanceTimersByTimeAsync(0);
    expect(sent().slice(1)).toEqual(['standby a~', 'standby b~', 'standby c~', 'standby d~']);
    expect(rejected.slice(1)).toEqual([['e', refused]]);
  });

  it('gives up, while the standby queue confirms nothing, what the first queue does not confirm and may not be asked again', async () => {
    const { ask, sent, rejected } = setUp();
    const ids = Array.from({ length: 12 }, (_, number) => `a${number}`);
    for (const id of ids) ask(id);
    await jest.advanceTimersByTimeAsync(PATIENCE_MS);
    expect(sent().filter((copy) => copy.startsWith('standby'))).toHaveLength(10);
    await jest.advanceTimersByTimeAsync(901);
    expect(rejected.map(([id]) => id)).toEqual(ids);
  });

  it('asks everything again on a new channel, with the time that is left', async () => {
    const { queries, ask, copies, sent, end, rejected } = setUp();
    ask('a');
    ask('b');
    queries.answered('b');
    await jest.advanceTimersByTimeAsync(300);
    await end('first a', 'lost');
    expect(rejected).toEqual([]);
    queries.askAgain();
    expect(sent()).toEqual(['first a', 'first b', 'first a']);
    expect(copies.at(-1)!.timeoutMs).toBe(4700);
    queries.giveUp('no connection');
    expect(rejected).toEqual([['a', expect.objectContaining({ status: 'UNAVAILABLE' })]]);
    expect(queries.has('a')).toBe(false);
  });

  it('refuses what has less than a millisecond left', async () => {
    const { ask, sent, rejected } = setUp();
    ask('a', { ...OPTIONS, timeoutMs: 0.5 });
    expect(sent()).toEqual([]);
    expect(rejected).toEqual([['a', expect.objectContaining({ status: 'UNAVAILABLE' })]]);
  });

  it('asks only the queries of an ended channel again, and forgets their earlier copies', async () => {
    const { queries, ask, copies, sent, end, rejected } = setUp();
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
    const { queries, ask, sent, end } = setUp();
    ask('a');
    await jest.advanceTimersByTimeAsync(PATIENCE_MS);
    queries.askAgain();
    await end('first a', 'confirmed');
    queries.answered('a~');
    ask('b');
    expect(sent()).toEqual(['first a', 'standby a~', 'first a', 'first b']);
  });

  it('without a standby exchange fails what no queue took', async () => {
    const { ask, sent, end, rejected } = setUp('');
    ask('a');
    await end('first a', 'confirmed');
    await jest.advanceTimersByTimeAsync(PATIENCE_MS);
    ask('b');
    await end('first b', 'returned');
    ask('c');
    expect(sent()).toEqual(['first a', 'first b', 'first c']);
    expect(rejected).toEqual([['b', expect.objectContaining({ status: 'UNAVAILABLE' })]]);
  });
});
