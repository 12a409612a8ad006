import { CallTurnsBench, MANY, READS, WRITES } from '../../test/call-turns-bench';
import {
  CallTurns,
  HEAVIEST_BYTES,
  HEAVY_ANSWER_BYTES,
  LARGEST_ANSWER_BYTES,
  MOST_ANSWER_BYTES,
  MOST_HEAVY_BYTES,
  MOST_UNKNOWN,
} from './call-turns';

describe(CallTurns.name, () => {
  let bench: CallTurnsBench;

  beforeEach(() => {
    jest.useFakeTimers();
    bench = new CallTurnsBench();
  });
  afterEach(() => void jest.useRealTimers());

  describe('of heavy commands', () => {
    const MOST_HEAVY = MOST_HEAVY_BYTES / HEAVIEST_BYTES;
    const MOST_HEAVY_OF_KEY = (3 / 4) * MOST_HEAVY;
    const beginHeavy = (apiKey: string, bytes = HEAVIEST_BYTES) => bench.beginMany(apiKey, MANY, WRITES, bytes);
    const endHeavy = (apiKey: string) => bench.end(apiKey, WRITES, HEAVIEST_BYTES);

    it('are as many as a process of a service takes from its queue, three quarters of them of a key', () => {
      beginHeavy('settled');
      expect(bench.begun).toHaveLength(MOST_HEAVY_OF_KEY);
      beginHeavy('settled other');
      expect(bench.begun).toHaveLength(MOST_HEAVY);
      endHeavy('settled');
      expect(bench.begun).toHaveLength(MOST_HEAVY + 1);
    });

    it('are more when they are smaller, and as many when they are larger', () => {
      beginHeavy('settled', HEAVIEST_BYTES / 4);
      expect(bench.begun).toHaveLength(4 * MOST_HEAVY_OF_KEY);
      for (let ended = 1; ended <= 4; ended++) bench.end('settled', WRITES, HEAVIEST_BYTES / 4);
      expect(bench.begun).toHaveLength(4 * MOST_HEAVY_OF_KEY + 4);
      bench.begun = [];
      beginHeavy('settled other', 2 * HEAVIEST_BYTES);
      expect(bench.begun).toHaveLength(MOST_HEAVY - MOST_HEAVY_OF_KEY);
    });

    it('keep no light command waiting, nor heavy ones of another service', () => {
      beginHeavy('settled');
      beginHeavy('settled other');
      bench.begin('settled light');
      expect(bench.begun.at(-1)).toBe('settled light');
      bench.begin('settled elsewhere', 'users.commands', HEAVIEST_BYTES);
      expect(bench.begun.at(-1)).toBe('settled elsewhere');
    });

    it('come to settled keys, too, while new ones have more than may be at work', () => {
      beginHeavy('new');
      beginHeavy('new other');
      beginHeavy('settled');
      endHeavy('new');
      expect(bench.begun.at(-1)).toBe('settled');
    });
  });

  describe('of heavy queries', () => {
    const MOST_PAGES = MOST_ANSWER_BYTES / LARGEST_ANSWER_BYTES;
    const MOST_PAGES_OF_KEY = (3 / 4) * MOST_PAGES;
    const beginPages = (apiKey: string, bytes = LARGEST_ANSWER_BYTES) => bench.beginMany(apiKey, MANY, READS, bytes);

    it('are few, three quarters of them of a key, and keep no light query waiting', () => {
      beginPages('settled', 2 * LARGEST_ANSWER_BYTES);
      expect(bench.begun).toHaveLength(MOST_PAGES_OF_KEY);
      beginPages('settled other');
      expect(bench.begun).toHaveLength(MOST_PAGES);
      bench.begin('settled', READS, HEAVY_ANSWER_BYTES - 1);
      expect(bench.begun).toHaveLength(MOST_PAGES + 1);
      bench.end('settled', READS, 2 * LARGEST_ANSWER_BYTES);
      expect(bench.begun).toHaveLength(MOST_PAGES + 2);
    });

    it('of new keys are a quarter of all beside those of settled keys', () => {
      bench.begin('settled', READS, LARGEST_ANSWER_BYTES);
      bench.end('settled', READS, LARGEST_ANSWER_BYTES);
      const before = bench.begun.length;
      for (let key = 0; key < 20; key++) bench.begin(`new ${key}`, READS, LARGEST_ANSWER_BYTES);
      expect(bench.begun.length - before).toBe(MOST_PAGES / 4);
    });

    it('are few for a key whose answers may have any size, and come to other such keys', () => {
      const beginUnknown = (apiKey: string) =>
        bench.turns.begin({ ...bench.turn(apiKey, READS), heavyBytes: undefined }, () => bench.begun.push(apiKey));
      for (let call = 0; call < MANY; call++) beginUnknown('new');
      expect(bench.begun).toHaveLength(MOST_UNKNOWN.ofKey);
      beginUnknown('new other');
      expect(bench.begun.at(-1)).toBe('new other');
    });

    it('are missing because of the share of their key when it has some and there are results', () => {
      const page = bench.turn('settled', READS, LARGEST_ANSWER_BYTES);
      const since = performance.now();
      const isOver = (apiKey = 'settled', from = since) => bench.turns.isOverShare({ ...page, apiKey }, from);
      beginPages('settled');
      expect(isOver()).toBe(false);
      jest.advanceTimersByTime(1);
      bench.turns.end(page, false);
      expect(isOver()).toBe(false);
      bench.turns.end(page, true);
      expect([isOver(), isOver('settled other'), isOver('settled', performance.now() + 1)]).toEqual([true, false, false]);
    });
  });
});
