import { CallTurns, MOST_BESIDE_SETTLED, MOST_QUERIES } from './call-turns';

const [WRITES, READS] = ['notifications.commands', 'notifications.queries'] as const;
const MANY = 10 * MOST_BESIDE_SETTLED;

describe(CallTurns.name, () => {
  let turns: CallTurns;
  let begun: string[];

  beforeEach(() => {
    jest.useFakeTimers();
    turns = new CallTurns();
    begun = [];
  });
  afterEach(() => void jest.useRealTimers());

  const begin = (apiKey: string, kind: typeof WRITES | typeof READS = WRITES) =>
    turns.begin(kind, apiKey, apiKey.startsWith('settled'), () => begun.push(apiKey));
  const beginMany = (apiKey: string, count = MANY, kind: typeof WRITES | typeof READS = WRITES) => {
    for (let call = 0; call < count; call++) begin(apiKey, kind);
  };
  const begunOf = (apiKey: string) => begun.filter((one) => one === apiKey).length;

  describe('of new keys', () => {
    it('are at once while no settled key calls', () => {
      beginMany('new');
      expect(begun).toHaveLength(MANY);
      begin('settled');
      turns.end(WRITES, true);
      jest.advanceTimersByTime(1001);
      begin('new');
      expect(begunOf('new')).toBe(MANY + 1);
    });

    it.each([
      ['at work', () => jest.advanceTimersByTime(10_000)],
      ['of the last second', () => turns.end(WRITES, true)],
    ])('are few beside a call of a settled key %s, and one more when one ends', (_, then) => {
      begin('settled');
      then();
      beginMany('new');
      expect(begunOf('new')).toBe(MOST_BESIDE_SETTLED);
      begin('settled');
      expect(begun.at(-1)).toBe('settled');
      for (let ended = 1; ended <= 10; ended++) {
        turns.end(WRITES, false);
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
      turns.end(WRITES, false);
      turns.end(WRITES, false);
      expect(begun.slice(-2)).toEqual(['busy new', 'other new']);
    });

    it('come at once when the settled keys have stopped', () => {
      begin('settled');
      turns.end(WRITES, true);
      beginMany('new');
      jest.advanceTimersByTime(1001);
      turns.end(WRITES, false);
      expect(begunOf('new')).toBe(MANY);
    });
  });

  describe('of queries', () => {
    it('are as many as a process of a service takes from its queue; a key with one call is next, whatever a busy one has', () => {
      beginMany('settled and busy', MANY, READS);
      begin('settled and quiet', READS);
      expect(begun).toHaveLength(MOST_QUERIES);
      turns.end(READS, true);
      turns.end(READS, true);
      expect(begun.slice(-2)).toEqual(['settled and busy', 'settled and quiet']);
    });

    it('come to new keys, too, while settled ones have more than may be at work', () => {
      beginMany('settled', MANY, READS);
      beginMany('new', MANY, READS);
      for (let ended = 0; ended < MOST_BESIDE_SETTLED; ended++) turns.end(READS, true);
      expect(begunOf('new')).toBe(MOST_BESIDE_SETTLED);
      turns.end(READS, true);
      expect(begun.at(-1)).toBe('settled');
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
      turns.end(READS, true);
    };
    beginMany('settled', MOST_QUERIES, READS);
    for (let call = 0; call < MANY; call++) turns.begin(READS, 'settled', true, endAtOnce);
    turns.end(READS, true);
    expect(ended).toBe(MANY);
  });
});
