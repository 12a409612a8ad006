import { Pace } from './pace';

const MOST = 4;
const nextIteration = () => new Promise((resolve) => setImmediate(resolve));

describe(Pace.name, () => {
  it.each([
    ['begin', [MOST, 2 * MOST, 2 * MOST + 1]],
    ['later', [0, MOST, 2 * MOST, 2 * MOST + 1]],
  ] as const)(
    '%s: number of requests that have begun after each iteration of the event loop, in their order',
    async (way, expected) => {
      const pace = new Pace(MOST);
      const begun: number[] = [];
      const works = 2 * MOST + 1;
      for (let work = 0; work < works; work++) pace[way](() => begun.push(work));
      const counts = [begun.length];
      while (counts.at(-1) !== works) {
        await nextIteration();
        counts.push(begun.length);
      }
      expect(counts).toEqual(expected);
      expect(begun).toEqual([...begun.keys()]);
    },
  );

  it('is free again when nothing waits', async () => {
    const pace = new Pace(MOST);
    for (let work = 0; work < MOST; work++) pace.begin(() => undefined);
    expect(pace.isFree).toBe(false);
    await nextIteration();
    expect(pace.isFree).toBe(true);
    for (let work = 0; work < MOST + 3; work++) pace.begin(() => undefined);
    expect(pace.isFree).toBe(false);
  });

  it('gives no turn to what was removed, which waits no more', async () => {
    const pace = new Pace(MOST);
    const begun: number[] = [];
    const count = 10 * MOST;
    const removals = Array.from({ length: count }, (_, work) => pace.later(() => begun.push(work), String(work % 3)));
    const kept = [count - 5, count - 1];
    removals.forEach((remove, work) => kept.includes(work) || remove());
    await nextIteration();
    expect(begun.sort()).toEqual(kept);
    removals.forEach((remove) => remove());
    expect([pace.isFree, begun.length]).toEqual([true, kept.length]);
  });

  it('removes a few of many works, too', async () => {
    const pace = new Pace(MOST);
    const begun: number[] = [];
    const removals = Array.from({ length: 2 * MOST }, (_, work) => pace.later(() => begun.push(work)));
    removals[0]();
    removals[MOST]();
    await nextIteration();
    expect(begun).toEqual([1, 2, 3, MOST + 1]);
    removals.at(-1)!();
    await nextIteration();
    expect([begun.at(-1), pace.isFree]).toEqual([2 * MOST - 2, true]);
  });
});
