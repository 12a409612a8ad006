import { waitAfter } from './wait-after';

describe(waitAfter.name, () => {
  afterEach(() => void jest.restoreAllMocks());

  it.each([
    [0, [50, 100, 200, 2500, 2500]],
    [1, [100, 200, 400, 5000, 5000]],
  ])('doubles up to a limit, and half of it is random: %d', (random, expected) => {
    jest.spyOn(Math, 'random').mockReturnValue(random);
    expect([1, 2, 3, 7, 1100].map((failures) => waitAfter(failures))).toEqual(expected);
  });

  it('has other limits when they are given', () => {
    jest.spyOn(Math, 'random').mockReturnValue(1);
    expect([1, 2, 9].map((failures) => waitAfter(failures, 10, 30))).toEqual([10, 20, 30]);
  });
});
