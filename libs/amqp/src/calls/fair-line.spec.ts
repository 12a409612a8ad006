import { FairLine } from './fair-line';

const lineOf = (...items: string[]) => {
  const line = new FairLine<string>();
  for (const item of items) line.add(item[0], item);
  return line;
};

const take = (line: FairLine<string>, most: number) => {
  const taken: string[] = [];
  line.take((item) => taken.length < most && taken.push(item) > 0);
  return taken;
};

describe(FairLine.name, () => {
  it('keeps the order of one owner', () => {
    const line = lineOf('a1', 'a2', 'a3');
    expect(take(line, 2)).toEqual(['a1', 'a2']);
    expect(take(line, 2)).toEqual(['a3']);
    expect(line.isEmpty).toBe(true);
  });

  it('lets owners take turns, also over several takes', () => {
    const line = lineOf('a1', 'a2', 'a3', 'b1', 'c1');
    expect(take(line, 2)).toEqual(['a1', 'b1']);
    line.add('b', 'b2');
    expect(take(line, 9)).toEqual(['c1', 'a2', 'b2', 'a3']);
  });

  it('keeps what was not accepted', () => {
    const line = lineOf('a1');
    expect(take(line, 0)).toEqual([]);
    expect(line.isEmpty).toBe(false);
    expect(take(line, 1)).toEqual(['a1']);
  });
});
