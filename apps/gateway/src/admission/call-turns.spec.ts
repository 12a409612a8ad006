import { callsWaiting } from '../server/metrics';
import { CallTurns, MOST_BESIDE_SETTLED, MOST_QUERIES } from './call-turns';

const [WRITES, READS] = ['notifications.commands', 'notifications.queries'] as const;
const MANY = 10 * MOST_BESIDE_SETTLED;
const MOST_OF_KEY = 192;

describe(CallTurns.name, () => {
  let turns: CallTurns;
  let begun: string[];

  beforeEach(() => {
    jest.useFakeTimers();
    turns = new CallTurns();
    callsWaiting.reset();
    begun = [];
  });
  afterEach(() => void jest.useRealTimers());

  const begin = (apiKey: string, kind: typeof WRITES | typeof READS = WRITES) =>
    turns.begin(kind, apiKey, apiKey.startsWith('settled'), () => begun.push(apiKey));
  const beginMany = (apiKey: string, count = MANY, kind: typeof WRITES | typeof READS = WRITES) => {
    for (let call = 0; call < count; call++) begin(apiKey, kind);
  };
  const end = (apiKey: string, kind: typeof WRITES | typeof READS = WRITES) =>
    turns.end(kind, apiKey, apiKey.startsWith('settled'));
  const waiting = async () => (await callsWaiting.get()).values[0].value;
  const begunOf = (apiKey: string) => begun.filter((one) => one === apiKey).length;

  describe('of new keys', () => {
    it('are at once while no settled key calls', () => {
      beginMany('new');
      expect(begun).toHaveLength(MANY);
      begin('settled');
      end('settled');
      jest.advanceTimersByTime(1001);
      begin('new');
      expect(begunOf('new')).toBe(MANY + 1);
    });

    it.each([
      ['at work', () => jest.advanceTimersByTime(10_000)],
      ['of the last second', () => end('settled')],
    ])('are few beside a call of a settled key %s, and one more when one ends', (_, then) => {
      begin('settled');
      then();
      beginMany('new');
      expect(begunOf('new')).toBe(MOST_BESIDE_SETTLED);
      begin('settled');
      expect(begun.at(-1)).toBe('settled');
      for (let ended = 1; ended <= 10; ended++) {
        end('new');
        expect(begunOf('new')).toBe(MOST_BESIDE_SETTLED + ended);
      }
    });

    it('are as many as those of settled ones: one settled key with many calls does not keep them out', () => {
      beginMany('settled', 3 * MOST_BESIDE_SETTLED);
      beginMany('new');
      expect(begunOf('new')).toBe(3 * MOST_BESIDE_SETTLED);
    });

    it('alternate between the keys', () => {
      begin('settled');
      beginMany('busy new');
      begin('other new');
      end('busy new');
      end('busy new');
      expect(begun.slice(-2)).toEqual(['busy new', 'other new']);
    });

    it('come at once when the settled keys have stopped for a second, though no call begins or ends then', () => {
      begin('settled');
      beginMany('new');
      jest.advanceTimersByTime(5000);
      begin('settled');
      end('settled');
      end('settled');
      jest.advanceTimersByTime(999);
      expect(begunOf('new')).toBe(MOST_BESIDE_SETTLED);
      jest.advanceTimersByTime(2);
      expect(begunOf('new')).toBe(MANY);
      expect(jest.getTimerCount()).toBe(0);
    });

    it('come at the end of the second of the last settled one, not of an earlier one', () => {
      begin('settled');
      end('settled');
      beginMany('new');
      jest.advanceTimersByTime(500);
      begin('settled');
      end('settled');
      jest.advanceTimersByTime(999);
      expect(begunOf('new')).toBe(MOST_BESIDE_SETTLED);
      jest.advanceTimersByTime(2);
      expect(begunOf('new')).toBe(MANY);
    });
  });

  describe('of queries', () => {
    it('are as many as a process of a service takes from its queue', () => {
      beginMany('settled', MANY, READS);
      beginMany('settled other', MANY, READS);
      expect(begun).toHaveLength(MOST_QUERIES);
      end('settled other', READS);
      expect(begun).toHaveLength(MOST_QUERIES + 1);
    });

    it.each(['settled and busy', 'new and busy'])(
      'of a key that is %s are three quarters: another one begins at once, and the key has its next call when one ends',
      (busy) => {
        beginMany(busy, MANY, READS);
        expect(begunOf(busy)).toBe(MOST_OF_KEY);
        beginMany('settled and quiet', MOST_QUERIES - MOST_OF_KEY, READS);
        expect(begunOf('settled and quiet')).toBe(MOST_QUERIES - MOST_OF_KEY);
        end('settled and quiet', READS);
        expect(begunOf(busy)).toBe(MOST_OF_KEY);
        end(busy, READS);
        expect(begunOf(busy)).toBe(MOST_OF_KEY + (busy.startsWith('settled') ? 1 : 0));
      },
    );

    it('alternate between the keys: a key with one call is next, whatever busy ones have', () => {
      beginMany('settled and busy', MANY, READS);
      beginMany('settled and as busy', MANY, READS);
      begin('settled and quiet', READS);
      for (let ended = 1; ended <= 3; ended++) end('settled and busy', READS);
      expect(begun.slice(-3)).toContain('settled and quiet');
    });

    it('come to new keys, too, while settled ones have more than may be at work', () => {
      beginMany('settled', MOST_OF_KEY, READS);
      beginMany('settled other', MANY, READS);
      beginMany('new', MANY, READS);
      for (let ended = 0; ended < MOST_BESIDE_SETTLED; ended++) end('settled', READS);
      expect(begunOf('new')).toBe(MOST_BESIDE_SETTLED);
      end('settled', READS);
      expect(begun.at(-1)).toBe('settled other');
    });
  });

  describe('that are given up', () => {
    it('never begin, are counted no more, and leave the others in their order', async () => {
      beginMany('settled', MOST_OF_KEY, READS);
      const first = begin('settled', READS);
      begin('settled', READS);
      const atWork = begin('settled other', READS);
      expect(await waiting()).toBe(2);
      expect([first(), first(), atWork()]).toEqual([true, false, false]);
      expect(await waiting()).toBe(1);
      end('settled', READS);
      end('settled', READS);
      expect([begunOf('settled'), await waiting()]).toEqual([MOST_OF_KEY + 1, 0]);
    });
  });

  it('come to another kind while all of one kind hang', () => {
    beginMany('settled', MANY, READS);
    begin('new');
    expect(begun.at(-1)).toBe('new');
  });

  it('come to all that waits when each call ends at once', () => {
    let ended = 0;
    const endAtOnce = () => {
      ended++;
      end('settled', READS);
    };
    beginMany('settled', MOST_OF_KEY, READS);
    for (let call = 0; call < MANY; call++) turns.begin(READS, 'settled', true, endAtOnce);
    expect(ended).toBe(0);
    end('settled', READS);
    expect(ended).toBe(MANY);
  });
});
