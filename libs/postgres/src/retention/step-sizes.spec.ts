import { StepSizes } from './step-sizes';

describe(StepSizes.name, () => {
  it('halves the size after a slow step and doubles it after a fast one, within its bounds', () => {
    const sizes = new StepSizes(10, 4, 32);
    const after = (tookMs: number) => {
      sizes.took('key', tookMs);
      return sizes.of('key');
    };
    expect([300, 300, 300].map(after)).toEqual([5, 4, 4]);
    expect([10, 10, 10, 10].map(after)).toEqual([8, 16, 32, 32]);
    expect(after(Infinity)).toBe(16);
  });

  it('does not double the size after a fast step that had fewer rows', () => {
    const sizes = new StepSizes(10, 1, 100);
    sizes.took('key', 10, false);
    expect(sizes.of('key')).toBe(10);
    sizes.took('key', 300, false);
    expect(sizes.of('key')).toBe(5);
  });

  it('leaves the steps of other API keys as they are', () => {
    const sizes = new StepSizes(10, 1, 100);
    sizes.took('slow', 1000);
    expect(['slow', 'other'].map((key) => sizes.of(key))).toEqual([5, 10]);
  });
});
