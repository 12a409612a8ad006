import { InFlight } from './in-flight';

describe(InFlight.name, () => {
  it('returns an item in flight, and removes it once', () => {
    const calls = new InFlight<{ name: string }>();
    const first = { name: 'first' };
    calls.set('a', first);
    calls.set('b', { name: 'second' });
    expect(calls.get('a')).toBe(first);
    expect(calls.size).toBe(2);
    expect(calls.take('a')).toBe(first);
    expect(calls.take('a')).toBeUndefined();
    expect(calls.get('a')).toBeUndefined();
    expect(calls.keys()).toEqual(['b']);
    expect(calls.size).toBe(1);
  });

  it('may be changed while iterating over its keys', () => {
    const calls = new InFlight<number>();
    for (const key of ['a', 'b', 'c']) calls.set(key, 1);
    for (const key of calls.keys()) {
      calls.take(key);
      calls.set(`${key} again`, 2);
    }
    expect(calls.keys()).toEqual(['a again', 'b again', 'c again']);
  });
});
