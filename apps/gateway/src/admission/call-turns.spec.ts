import { CallTurnsBench, MANY, READS, WRITES } from '../../test/call-turns-bench';
import { BESIDE_MS, CallTurns, HEAVIEST_BYTES, MOST_BESIDE_SETTLED, MOST_LIGHT_BESIDE, MOST_QUERIES } from './call-turns';

const MOST_OF_KEY = 192;

describe(CallTurns.name, () => {
  let bench: CallTurnsBench;

  beforeEach(() => {
    jest.useFakeTimers();
    bench = new CallTurnsBench();
  });
  afterEach(() => void jest.useRealTimers());

  describe('of new keys', () => {
    /** So many that none of them has its most light commands. */
    const KEYS = (2 * MANY) / MOST_LIGHT_BESIDE;
    const beginNew = () => {
      for (let call = 0; call < MANY; call++) bench.begin(`new ${call % KEYS}`);
    };
    const begunNew = () => bench.begun.filter((one) => one.startsWith('new')).length;

    it('are at once while no settled key calls', () => {
      beginNew();
      expect(bench.begun).toHaveLength(MANY);
      bench.begin('settled');
      bench.end('settled');
      jest.advanceTimersByTime(1001);
      bench.begin('new 0');
      expect(begunNew()).toBe(MANY + 1);
    });

    it.each([
      ['at work', () => jest.advanceTimersByTime(10_000)],
      ['of the last second', () => bench.end('settled')],
    ])('are few beside a call of a settled key %s, and one more when one ends', (_, then) => {
      bench.begin('settled');
      then();
      beginNew();
      expect(begunNew()).toBe(MOST_BESIDE_SETTLED);
      bench.begin('settled');
      expect(bench.begun.at(-1)).toBe('settled');
      for (let ended = 1; ended <= 10; ended++) {
        bench.end(`new ${ended % KEYS}`);
        expect(begunNew()).toBe(MOST_BESIDE_SETTLED + ended);
      }
    });

    it('are as many as those of settled ones: one settled key with many calls does not keep them out', () => {
      bench.beginMany('settled', 3 * MOST_BESIDE_SETTLED);
      beginNew();
      expect(begunNew()).toBe(3 * MOST_BESIDE_SETTLED);
    });

    it('alternate between the keys', () => {
      bench.begin('settled');
      for (let key = 0; key < MOST_BESIDE_SETTLED; key++) bench.begin(`new ${key}`);
      bench.beginMany('busy new', 2);
      bench.begin('other new');
      bench.end('new 0');
      bench.end('new 1');
      expect(bench.begun.slice(-2)).toEqual(['busy new', 'other new']);
    });

    it('come at once when the settled keys have stopped for a second, though no call begins or ends then', () => {
      bench.begin('settled');
      beginNew();
      jest.advanceTimersByTime(5000);
      bench.begin('settled');
      bench.end('settled');
      bench.end('settled');
      jest.advanceTimersByTime(999);
      expect(begunNew()).toBe(MOST_BESIDE_SETTLED);
      jest.advanceTimersByTime(2);
      expect(begunNew()).toBe(MANY);
      expect(jest.getTimerCount()).toBe(0);
    });

    it('come at the end of the second of the last settled one, not of an earlier one', () => {
      bench.begin('settled');
      bench.end('settled');
      beginNew();
      jest.advanceTimersByTime(500);
      bench.begin('settled');
      bench.end('settled');
      jest.advanceTimersByTime(999);
      expect(begunNew()).toBe(MOST_BESIDE_SETTLED);
      jest.advanceTimersByTime(2);
      expect(begunNew()).toBe(MANY);
    });
  });

  describe('of light commands', () => {
    it('are all at once of a key alone', () => {
      bench.beginMany('settled');
      expect(bench.begun).toHaveLength(MANY);
    });

    it('are a bounded number of a key beside others, and the next one when one ends', async () => {
      bench.begin('settled other');
      bench.end('settled other');
      bench.beginMany('settled');
      expect([bench.begunOf('settled'), await bench.waiting()]).toEqual([MOST_LIGHT_BESIDE, MANY - MOST_LIGHT_BESIDE]);
      bench.begin('settled other');
      bench.begin('settled third');
      expect(bench.begun.slice(-2)).toEqual(['settled other', 'settled third']);
      bench.end('settled');
      expect(bench.begunOf('settled')).toBe(MOST_LIGHT_BESIDE + 1);
    });

    it.each([
      ['heavy ones of another key in the same queue', WRITES, MOST_LIGHT_BESIDE],
      ['commands of another service', 'users.commands', MANY],
      ['queries', READS, MANY],
    ] as const)('are so many beside %s', (_, kind, most) => {
      bench.begin('settled other', kind, HEAVIEST_BYTES);
      bench.beginMany('settled');
      expect(bench.begunOf('settled')).toBe(most);
    });

    it('are all when the others have stopped for some time', () => {
      bench.begin('settled other');
      bench.end('settled other');
      bench.beginMany('settled');
      jest.advanceTimersByTime(BESIDE_MS);
      bench.end('settled');
      expect(bench.begunOf('settled')).toBe(MOST_LIGHT_BESIDE + 1);
      jest.advanceTimersByTime(1);
      bench.end('settled');
      expect(bench.begunOf('settled')).toBe(MANY);
    });

    it('that have no turn in time are missing because of the share of their key', () => {
      bench.begin('settled other');
      bench.beginMany('settled');
      const since = performance.now();
      bench.end('settled');
      expect(bench.turns.isOverShare(bench.turn('settled', WRITES), since)).toBe(true);
    });
  });

  describe('of queries', () => {
    it('are as many as a process of a service takes from its queue', () => {
      bench.beginMany('settled', MANY, READS);
      bench.beginMany('settled other', MANY, READS);
      expect(bench.begun).toHaveLength(MOST_QUERIES);
      bench.end('settled other', READS);
      expect(bench.begun).toHaveLength(MOST_QUERIES + 1);
    });

    it.each(['settled and busy', 'new and busy'])(
      'of a key that is %s are three quarters: another one begins at once, and the key has its next call when one ends',
      (busy) => {
        bench.beginMany(busy, MANY, READS);
        expect(bench.begunOf(busy)).toBe(MOST_OF_KEY);
        bench.beginMany('settled and quiet', MOST_QUERIES - MOST_OF_KEY, READS);
        expect(bench.begunOf('settled and quiet')).toBe(MOST_QUERIES - MOST_OF_KEY);
        bench.end('settled and quiet', READS);
        expect(bench.begunOf(busy)).toBe(MOST_OF_KEY);
        bench.end(busy, READS);
        expect(bench.begunOf(busy)).toBe(MOST_OF_KEY + (busy.startsWith('settled') ? 1 : 0));
      },
    );

    it('alternate between the keys: a key with one call is next, whatever busy ones have', () => {
      bench.beginMany('settled and busy', MANY, READS);
      bench.beginMany('settled and as busy', MANY, READS);
      bench.begin('settled and quiet', READS);
      for (let ended = 1; ended <= 3; ended++) bench.end('settled and busy', READS);
      expect(bench.begun.slice(-3)).toContain('settled and quiet');
    });

    it('come to new keys, too, while settled ones have more than may be at work', () => {
      bench.beginMany('settled', MOST_OF_KEY, READS);
      bench.beginMany('settled other', MANY, READS);
      bench.beginMany('new', MANY, READS);
      for (let ended = 0; ended < MOST_BESIDE_SETTLED; ended++) bench.end('settled', READS);
      expect(bench.begunOf('new')).toBe(MOST_BESIDE_SETTLED);
      bench.end('settled', READS);
      expect(bench.begun.at(-1)).toBe('settled other');
    });
  });

  describe('that are given up', () => {
    it('never begin, are counted no more, and leave the others in their order', async () => {
      bench.beginMany('settled', MOST_OF_KEY, READS);
      const first = bench.begin('settled', READS);
      bench.begin('settled', READS);
      const atWork = bench.begin('settled other', READS);
      expect(await bench.waiting()).toBe(2);
      expect([first(), first(), atWork()]).toEqual([true, false, false]);
      expect(await bench.waiting()).toBe(1);
      bench.end('settled', READS);
      bench.end('settled', READS);
      expect([bench.begunOf('settled'), await bench.waiting()]).toEqual([MOST_OF_KEY + 1, 0]);
    });
  });

  it('come to another kind while all of one kind hang', () => {
    bench.beginMany('settled', MANY, READS);
    bench.begin('new');
    expect(bench.begun.at(-1)).toBe('new');
  });

  it('come to all that waits when each call ends at once', () => {
    let ended = 0;
    const endAtOnce = () => {
      ended++;
      bench.end('settled', READS);
    };
    bench.beginMany('settled', MOST_OF_KEY, READS);
    for (let call = 0; call < MANY; call++) bench.turns.begin(bench.turn('settled', READS), endAtOnce);
    expect(ended).toBe(0);
    bench.end('settled', READS);
    expect(ended).toBe(MANY);
  });
});
