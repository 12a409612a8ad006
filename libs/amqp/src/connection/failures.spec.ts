import { Failures } from './failures';

describe(Failures.name, () => {
  it('has a line for the first failure, then for all others once a minute, and begins anew after a success', () => {
    const failures = new Failures();
    const logged = [0, 5, 59, 60, 65, 130].map((second) => failures.add('ECONNREFUSED', second * 1000));
    expect(logged).toEqual([1, 0, 0, 3, 0, 2]);
    failures.clear();
    expect(failures.latest).toBeUndefined();
    expect(failures.add('ETIMEDOUT', 131_000)).toBe(1);
    expect(failures.latest).toBe('ETIMEDOUT');
  });
});
