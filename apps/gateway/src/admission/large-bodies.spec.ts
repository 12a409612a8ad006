import { LargeBodies } from './large-bodies';

const MEBIBYTE = 1024 * 1024;

describe(LargeBodies.name, () => {
  let bodies: LargeBodies;
  let begun: string[];

  const begin = (name: string, bytes = MEBIBYTE, apiKey = name[0]) => bodies.begin(apiKey, bytes, () => begun.push(name));
  const end = (apiKey: string, ms = 0, bytes = MEBIBYTE) => bodies.end(apiKey, bytes, ms);
  /** All that has begun since the last look, after a time in milliseconds. */
  const after = (ms: number) => {
    jest.advanceTimersByTime(ms);
    return begun.splice(0);
  };

  beforeEach(() => {
    jest.useFakeTimers();
    bodies = new LargeBodies();
    begun = [];
  });
  afterEach(() => void jest.useRealTimers());

  it('begins none in the iteration of the event loop in which it arrives', () => {
    begin('a');
    expect([begun.slice(), after(0)]).toEqual([[], ['a']]);
  });

  it('lets a key alone have 12 MiB at work, and all keys 16 MiB', () => {
    for (let number = 1; number <= 13; number++) begin(`a${number}`);
    for (let number = 1; number <= 5; number++) begin(`b${number}`);
    const first = after(0);
    expect(first.map(([key]) => key).join('')).toBe('aaaaaaaaaaaabbbb');
    end('a');
    expect(after(0)).toEqual(['a13']);
  });

  it('has one body of a key at work beside small calls of others, and another key need not wait for it', () => {
    bodies.smallCall('small');
    ['a1', 'a2', 'b1', 'b2', 'c1'].forEach((name) => begin(name));
    expect(after(0)).toEqual(['a1', 'b1']);
    end('b');
    expect(after(1)).toEqual(['b2']);
    end('b');
    expect(after(1)).toEqual(['c1']);
  });

  it('has several smaller ones at work beside small calls of others', () => {
    bodies.smallCall('small');
    for (const name of ['a1', 'a2', 'a3', 'a4']) begin(name, 200 * 1024);
    expect(after(0)).toEqual(['a1', 'a2', 'a3']);
  });

  it('does not hold back a key because of its own small calls, nor a second after those of others', () => {
    bodies.smallCall('a');
    begin('a1');
    begin('a2');
    expect(after(0)).toEqual(['a1', 'a2']);
    bodies.smallCall('small');
    begin('a3');
    expect(after(999)).toEqual([]);
    expect(after(200)).toEqual(['a3']);
  });

  it('lets a key begin one beside what another key began before the small calls of others', () => {
    for (let number = 1; number <= 12; number++) begin(`a${number}`);
    after(0);
    bodies.smallCall('small');
    ['a13', 'b1', 'b2', 'c1'].forEach((name) => begin(name));
    expect(after(0)).toEqual(['b1']);
    end('b');
    expect(after(1)).toEqual(['b2']);
  });

  it('rests beside small calls of others for as long as a body was at work, and for a second at most', () => {
    bodies.smallCall('small');
    begin('a1');
    begin('a2');
    after(0);
    end('a', 300);
    expect([after(299), after(2)]).toEqual([[], ['a2']]);
    bodies.smallCall('small');
    begin('a3');
    end('a', 5000);
    expect([after(999), after(2)]).toEqual([[], ['a3']]);
  });

  it('lets keys take turns', () => {
    bodies.smallCall('small');
    ['a1', 'a2', 'a3', 'b1'].forEach((name) => begin(name, 600 * 1024));
    expect(after(0)).toEqual(['a1', 'b1']);
    end('a', 0, 600 * 1024);
    expect(after(1)).toEqual(['a2']);
  });

  it('begins nothing that was given up', () => {
    bodies.smallCall('small');
    begin('a1');
    const giveUp = begin('a2');
    expect([giveUp(), giveUp()]).toEqual([true, false]);
    after(0);
    end('a');
    expect(after(1)).toEqual([]);
  });
});
