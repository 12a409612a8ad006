import { KINDS, type Kind } from './kinds';
import { Places } from './places';
import { Shares } from './shares';

const [WRITES, OTHER_WRITES, READS] = ['users.commands', 'notifications.commands', 'notifications.queries'] as const;

/** Keys that were answered as the first ones. */
function settledKeys(places: Places, count: number): string[] {
  const keys = Array.from({ length: count }, (_, key) => `key ${key}`);
  for (const key of keys) {
    places.take(READS, key);
    places.give(READS, key);
    places.answered(key);
  }
  return keys;
}

/** Takes as many places as one key can have. */
function fill(places: Places, kind: Kind, apiKey: string): number {
  let taken = 0;
  while (!places.take(kind, apiKey)) taken++;
  return taken;
}

describe(Shares.name, () => {
  it('gives the only holder four fifths, the next one room at once, and both equal shares in the end', () => {
    const shares = new Shares(900);
    let first = 0;
    while (!shares.take('first', 1)) first++;
    expect(first).toBe(720);
    let second = 0;
    while (!shares.take('second', 1)) second++;
    expect(second).toBe(144);
    // Both try to take whatever is returned.
    for (let turn = 0; turn < 2000; turn++) {
      const [holder] = first / (first + second) > (turn % 100) / 100 ? ['first'] : ['second'];
      shares.give(holder, 1);
      if (holder === 'first') first--;
      else second--;
      for (const one of turn % 2 ? ['first', 'second'] : ['second', 'first']) {
        if (shares.take(one, 1)) continue;
        if (one === 'first') first++;
        else second++;
      }
    }
    expect(Math.abs(first - second)).toBeLessThan(10);
    expect(first + second).toBeGreaterThan(780);
  });

  it('reports whether everything is taken, or only the share of one holder', () => {
    const shares = new Shares(10);
    shares.add('large', 10);
    expect([shares.problem('large', 1), shares.problem('other', 1)]).toEqual(['share', 'all']);
    shares.give('large', 10);
    expect([shares.all, shares.take('other', 1)]).toEqual([0, undefined]);
  });

  it('remembers only holders that hold something', () => {
    const shares = new Shares(10);
    for (let one = 0; one < 1000; one++) {
      shares.take(`key ${one}`, 1);
      shares.give(`key ${one}`, 1);
    }
    expect((shares as unknown as { holders: Map<string, number> }).holders.size).toBe(0);
  });
});

describe(Places.name, () => {
  beforeEach(() => void jest.useFakeTimers());
  afterEach(() => void jest.useRealTimers());

  it('gives one kind 60 % of all, and one key four fifths of that', () => {
    const places = new Places(1000);
    const keys = settledKeys(places, 200);
    expect(fill(places, WRITES, 'first')).toBe(480);
    for (const key of keys) fill(places, WRITES, key);
    expect(places.isFull(WRITES)).toBe(true);
    expect(KINDS).toContain(READS);
    expect(fill(places, READS, 'first')).toBeGreaterThan(150);
  });

  it('has places for reads when all writes hang', () => {
    const places = new Places(1000);
    for (const key of settledKeys(places, 200)) for (const kind of [WRITES, OTHER_WRITES]) fill(places, kind, key);
    expect([places.isFull(WRITES), places.isFull(OTHER_WRITES), places.isFull(READS)]).toEqual([true, true, false]);
    expect(fill(places, READS, 'first')).toBeGreaterThan(60);
  });

  it('has places for a key that has been answered for some time, while a thousand new ones come every two seconds', () => {
    const places = new Places(1000);
    const [good] = settledKeys(places, 1);
    jest.advanceTimersByTime(5000);
    for (let wave = 0; wave < 10; wave++) {
      const taken = Array.from({ length: 1000 }, (_, key) => `new ${key}`).filter((key) => !places.take(WRITES, key));
      expect(taken.length).toBeGreaterThan(540);
      expect([places.isFull(WRITES), places.isUneven(WRITES)]).toEqual([false, true]);
      expect(places.problem(WRITES, 'new')).toBe('all');
      const calls = Array.from({ length: 30 }, () => places.take(WRITES, good));
      expect(calls).toEqual(calls.map(() => undefined));
      // Slow answers: the new keys, too, were answered just before the next wave.
      jest.advanceTimersByTime(1500);
      for (const key of [...taken, ...calls.map(() => good)]) {
        places.give(WRITES, key);
        places.answered(key);
      }
      jest.advanceTimersByTime(500);
    }
  });

  it('has places for new keys in a kind that holds none, while the others hold all they can', () => {
    const places = new Places(1000);
    const keys = settledKeys(places, 200);
    const others = KINDS.filter((kind) => kind !== READS);
    for (const kind of others) for (const key of keys) fill(places, kind, key);
    expect(others).toHaveLength(3);
    expect([places.problem(READS, 'new'), places.isUneven(READS)]).toEqual([undefined, false]);
    for (let key = 0; !places.take(READS, `new ${key}`); key++);
    expect([places.isFull(READS), places.isUneven(READS)]).toEqual([false, true]);
    expect(places.problem(READS, keys[0])).toBeUndefined();
  });

  it.each([1, 2])('gives all %i places to one key', (max) => {
    expect(fill(new Places(max), WRITES, 'only')).toBe(max);
  });

  it('gives a second tenant its share within 100 ms of asking, when each call takes 20 ms', () => {
    const places = new Places(1000);
    const ends: { at: number; apiKey: string }[] = [];
    const held = { first: 0, second: 0 };
    for (let ms = 0; ms < 300; ms++) {
      while (ends[0]?.at <= ms) {
        const { apiKey } = ends.shift() as { apiKey: 'first' | 'second' };
        places.give(WRITES, apiKey);
        held[apiKey]--;
      }
      // Requests of one tenant in a millisecond. The second tenant starts after 200 ms.
      for (let call = 0; call < 50; call++)
        for (const apiKey of ms < 200 ? (['first'] as const) : (['first', 'second'] as const)) {
          if (places.take(WRITES, apiKey)) continue;
          held[apiKey]++;
          ends.push({ at: ms + 20, apiKey });
        }
      if (ms === 199) expect(held.first).toBe(480);
    }
    expect(held.second).toBeGreaterThan(0.8 * 0.5 * (held.first + held.second));
  });
});
