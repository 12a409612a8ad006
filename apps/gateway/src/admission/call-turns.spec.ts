import { callsWaiting } from '../server/metrics';
import {
  BESIDE_MS,
  CallTurns,
  HEAVIEST_BYTES,
  HEAVY_ANSWER_BYTES,
  LARGEST_ANSWER_BYTES,
  MOST_ANSWER_BYTES,
  MOST_BESIDE_SETTLED,
  MOST_HEAVY_BYTES,
  MOST_LIGHT_BESIDE,
  MOST_QUERIES,
  MOST_UNKNOWN,
} from './call-turns';
import type { Kind } from './kinds';

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

  const turn = (apiKey: string, kind: Kind, heavyBytes = 0) => ({
    kind,
    apiKey,
    heavyBytes,
    isSettled: apiKey.startsWith('settled'),
  });
  const begin = (apiKey: string, kind: Kind = WRITES, heavyBytes?: number) =>
    turns.begin(turn(apiKey, kind, heavyBytes), () => begun.push(apiKey));
  const beginMany = (apiKey: string, count = MANY, kind: Kind = WRITES, heavyBytes?: number) => {
    for (let call = 0; call < count; call++) begin(apiKey, kind, heavyBytes);
  };
  const end = (apiKey: string, kind: Kind = WRITES, heavyBytes?: number) => turns.end(turn(apiKey, kind, heavyBytes), true);
  const waiting = async () => (await callsWaiting.get()).values[0].value;
  const begunOf = (apiKey: string) => begun.filter((one) => one === apiKey).length;

  describe('of new keys', () => {
    /** So many that none of them has its most light commands. */
    const KEYS = MANY / MOST_BESIDE_SETTLED;
    const beginNew = () => {
      for (let call = 0; call < MANY; call++) begin(`new ${call % KEYS}`);
    };
    const begunNew = () => begun.filter((one) => one.startsWith('new')).length;

    it('are at once while no settled key calls', () => {
      beginNew();
      expect(begun).toHaveLength(MANY);
      begin('settled');
      end('settled');
      jest.advanceTimersByTime(1001);
      begin('new 0');
      expect(begunNew()).toBe(MANY + 1);
    });

    it.each([
      ['at work', () => jest.advanceTimersByTime(10_000)],
      ['of the last second', () => end('settled')],
    ])('are few beside a call of a settled key %s, and one more when one ends', (_, then) => {
      begin('settled');
      then();
      beginNew();
      expect(begunNew()).toBe(MOST_BESIDE_SETTLED);
      begin('settled');
      expect(begun.at(-1)).toBe('settled');
      for (let ended = 1; ended <= 10; ended++) {
        end(`new ${ended % KEYS}`);
        expect(begunNew()).toBe(MOST_BESIDE_SETTLED + ended);
      }
    });

    it('are as many as those of settled ones: one settled key with many calls does not keep them out', () => {
      beginMany('settled', 3 * MOST_BESIDE_SETTLED);
      beginNew();
      expect(begunNew()).toBe(3 * MOST_BESIDE_SETTLED);
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
      beginNew();
      jest.advanceTimersByTime(5000);
      begin('settled');
      end('settled');
      end('settled');
      jest.advanceTimersByTime(999);
      expect(begunNew()).toBe(MOST_BESIDE_SETTLED);
      jest.advanceTimersByTime(2);
      expect(begunNew()).toBe(MANY);
      expect(jest.getTimerCount()).toBe(0);
    });

    it('come at the end of the second of the last settled one, not of an earlier one', () => {
      begin('settled');
      end('settled');
      beginNew();
      jest.advanceTimersByTime(500);
      begin('settled');
      end('settled');
      jest.advanceTimersByTime(999);
      expect(begunNew()).toBe(MOST_BESIDE_SETTLED);
      jest.advanceTimersByTime(2);
      expect(begunNew()).toBe(MANY);
    });
  });

  describe('of light commands', () => {
    it('are all at once of a key alone', () => {
      beginMany('settled');
      expect(begun).toHaveLength(MANY);
    });

    it('are a bounded number of a key beside others, and the next one when one ends', async () => {
      begin('settled other');
      end('settled other');
      beginMany('settled');
      expect([begunOf('settled'), await waiting()]).toEqual([MOST_LIGHT_BESIDE, MANY - MOST_LIGHT_BESIDE]);
      begin('settled other');
      begin('settled third');
      expect(begun.slice(-2)).toEqual(['settled other', 'settled third']);
      end('settled');
      expect(begunOf('settled')).toBe(MOST_LIGHT_BESIDE + 1);
    });

    it.each([
      ['heavy ones of another key in the same queue', WRITES, MOST_LIGHT_BESIDE],
      ['commands of another service', 'users.commands', MANY],
      ['queries', READS, MANY],
    ] as const)('are so many beside %s', (_, kind, most) => {
      begin('settled other', kind, HEAVIEST_BYTES);
      beginMany('settled');
      expect(begunOf('settled')).toBe(most);
    });

    it('are all when the others have stopped for some time', () => {
      begin('settled other');
      end('settled other');
      beginMany('settled');
      jest.advanceTimersByTime(BESIDE_MS);
      end('settled');
      expect(begunOf('settled')).toBe(MOST_LIGHT_BESIDE + 1);
      jest.advanceTimersByTime(1);
      end('settled');
      expect(begunOf('settled')).toBe(MANY);
    });

    it('that have no turn in time are missing because of the share of their key', () => {
      begin('settled other');
      beginMany('settled');
      const since = performance.now();
      end('settled');
      expect(turns.isOverShare(turn('settled', WRITES), since)).toBe(true);
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

  describe('of heavy commands', () => {
    const MOST_HEAVY = MOST_HEAVY_BYTES / HEAVIEST_BYTES;
    const MOST_HEAVY_OF_KEY = (3 / 4) * MOST_HEAVY;
    const beginHeavy = (apiKey: string, bytes = HEAVIEST_BYTES) => beginMany(apiKey, MANY, WRITES, bytes);
    const endHeavy = (apiKey: string) => end(apiKey, WRITES, HEAVIEST_BYTES);

    it('are as many as a process of a service takes from its queue, three quarters of them of a key', () => {
      beginHeavy('settled');
      expect(begun).toHaveLength(MOST_HEAVY_OF_KEY);
      beginHeavy('settled other');
      expect(begun).toHaveLength(MOST_HEAVY);
      endHeavy('settled');
      expect(begun).toHaveLength(MOST_HEAVY + 1);
    });

    it('are more when they are smaller, and as many when they are larger', () => {
      beginHeavy('settled', HEAVIEST_BYTES / 4);
      expect(begun).toHaveLength(4 * MOST_HEAVY_OF_KEY);
      for (let ended = 1; ended <= 4; ended++) end('settled', WRITES, HEAVIEST_BYTES / 4);
      expect(begun).toHaveLength(4 * MOST_HEAVY_OF_KEY + 4);
      begun = [];
      beginHeavy('settled other', 2 * HEAVIEST_BYTES);
      expect(begun).toHaveLength(MOST_HEAVY - MOST_HEAVY_OF_KEY);
    });

    it('keep no light command waiting, nor heavy ones of another service', () => {
      beginHeavy('settled');
      beginHeavy('settled other');
      begin('settled light');
      expect(begun.at(-1)).toBe('settled light');
      begin('settled elsewhere', 'users.commands', HEAVIEST_BYTES);
      expect(begun.at(-1)).toBe('settled elsewhere');
    });

    it('come to settled keys, too, while new ones have more than may be at work', () => {
      beginHeavy('new');
      beginHeavy('new other');
      beginHeavy('settled');
      endHeavy('new');
      expect(begun.at(-1)).toBe('settled');
    });
  });

  describe('of heavy queries', () => {
    const MOST_PAGES = MOST_ANSWER_BYTES / LARGEST_ANSWER_BYTES;
    const MOST_PAGES_OF_KEY = (3 / 4) * MOST_PAGES;
    const beginPages = (apiKey: string, bytes = LARGEST_ANSWER_BYTES) => beginMany(apiKey, MANY, READS, bytes);

    it('are few, three quarters of them of a key, and keep no light query waiting', () => {
      beginPages('settled', 2 * LARGEST_ANSWER_BYTES);
      expect(begun).toHaveLength(MOST_PAGES_OF_KEY);
      beginPages('settled other');
      expect(begun).toHaveLength(MOST_PAGES);
      begin('settled', READS, HEAVY_ANSWER_BYTES - 1);
      expect(begun).toHaveLength(MOST_PAGES + 1);
      end('settled', READS, 2 * LARGEST_ANSWER_BYTES);
      expect(begun).toHaveLength(MOST_PAGES + 2);
    });

    it('of new keys are a quarter of all beside those of settled keys', () => {
      begin('settled', READS, LARGEST_ANSWER_BYTES);
      end('settled', READS, LARGEST_ANSWER_BYTES);
      const before = begun.length;
      for (let key = 0; key < 20; key++) begin(`new ${key}`, READS, LARGEST_ANSWER_BYTES);
      expect(begun.length - before).toBe(MOST_PAGES / 4);
    });

    it('are few for a key whose answers may have any size, and come to other such keys', () => {
      const beginUnknown = (apiKey: string) =>
        turns.begin({ ...turn(apiKey, READS), heavyBytes: undefined }, () => begun.push(apiKey));
      for (let call = 0; call < MANY; call++) beginUnknown('new');
      expect(begun).toHaveLength(MOST_UNKNOWN.ofKey);
      beginUnknown('new other');
      expect(begun.at(-1)).toBe('new other');
    });

    it('are missing because of the share of their key when it has some and there are results', () => {
      const page = turn('settled', READS, LARGEST_ANSWER_BYTES);
      const since = performance.now();
      const isOver = (apiKey = 'settled', from = since) => turns.isOverShare({ ...page, apiKey }, from);
      beginPages('settled');
      expect(isOver()).toBe(false);
      jest.advanceTimersByTime(1);
      turns.end(page, false);
      expect(isOver()).toBe(false);
      turns.end(page, true);
      expect([isOver(), isOver('settled other'), isOver('settled', performance.now() + 1)]).toEqual([true, false, false]);
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
    for (let call = 0; call < MANY; call++) turns.begin(turn('settled', READS), endAtOnce);
    expect(ended).toBe(0);
    end('settled', READS);
    expect(ended).toBe(MANY);
  });
});
