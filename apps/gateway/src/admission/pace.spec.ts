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
    expect([pace.isFree, pace.waiting]).toEqual([false, 3]);
  });
});
