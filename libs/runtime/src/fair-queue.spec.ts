import { FairQueue } from './fair-queue';

const queueOf = (...items: string[]) => {
  const queue = new FairQueue<string>();
  for (const item of items) queue.add(item[0], item);
  return queue;
};

const take = (queue: FairQueue<string>, most: number) => {
  const taken: string[] = [];
  queue.take((item) => taken.length < most && taken.push(item) > 0);
  return taken;
};

describe(FairQueue.name, () => {
  it('keeps the order of one owner', () => {
    const queue = queueOf('a1', 'a2', 'a3');
    expect(take(queue, 2)).toEqual(['a1', 'a2']);
    expect(take(queue, 2)).toEqual(['a3']);
    expect(queue.isEmpty).toBe(true);
  });

  it('lets owners take turns, also over several takes', () => {
    const queue = queueOf('a1', 'a2', 'a3', 'b1', 'c1');
    expect(take(queue, 2)).toEqual(['a1', 'b1']);
    queue.add('b', 'b2');
    expect(take(queue, 9)).toEqual(['c1', 'a2', 'b2', 'a3']);
  });

  it('keeps what was not accepted', () => {
    const queue = queueOf('a1');
    expect(take(queue, 0)).toEqual([]);
    expect(queue.isEmpty).toBe(false);
    expect(take(queue, 1)).toEqual(['a1']);
  });

  it('gives one owner several items, and then another one', () => {
    const queue = queueOf('a1', 'a2', 'a3', 'b1');
    const takeOfOne = (most: number) => {
      const taken: string[] = [];
      queue.takeOfOne((item) => taken.length < most && taken.push(item) > 0);
      return taken;
    };
    expect([takeOfOne(2), takeOfOne(2), takeOfOne(2), takeOfOne(2)]).toEqual([['a1', 'a2'], ['b1'], ['a3'], []]);
    expect(queue.isEmpty).toBe(true);
  });

  it('passes over owners that may not have a turn: these stay the first ones', () => {
    const queue = queueOf('a1', 'a2', 'b1', 'b2', 'c1');
    const isNot = (busy: string) => (owner: string) => owner !== busy;
    expect([queue.takeFirst(isNot('a')), queue.takeFirst(isNot('a'))]).toEqual(['b1', 'c1']);
    expect(queue.takeFirst(() => false)).toBeUndefined();
    expect(take(queue, 9)).toEqual(['a1', 'b2', 'a2']);
  });

  it('takes the last items of owners in turn', () => {
    const queue = queueOf('a1', 'a2', 'a3', 'b1');
    expect([queue.takeLast(), queue.takeLast(), queue.takeLast()]).toEqual(['a3', 'b1', 'a2']);
    expect([queue.takeFirst(() => true), queue.takeLast()]).toEqual(['a1', undefined]);
  });

  it('removes an item, and its owner with the last one', () => {
    const queue = queueOf('a1', 'a2', 'b1');
    expect([queue.remove('a', 'a1'), queue.remove('a', 'a1'), queue.remove('b', 'b1'), queue.remove('b', 'b1')]).toEqual([
      true,
      false,
      true,
      false,
    ]);
    expect(take(queue, 9)).toEqual(['a2']);
    expect(queue.isEmpty).toBe(true);
  });

  it('keeps some items in their places, and no owner without one', () => {
    const queue = queueOf('a1', 'a2', 'b1', 'c1', 'c2');
    queue.keep((item) => !['a1', 'b1', 'c2'].includes(item));
    expect([queue.has('a'), queue.has('b')]).toEqual([true, false]);
    expect(take(queue, 9)).toEqual(['a2', 'c1']);
  });
});
