import { scheduleBench as bench } from '../../test/schedule-bench';

describe('FairSchedule, small heavy work beside large work of other flows', () => {
  beforeEach(() => void jest.useFakeTimers());
  afterEach(() => void jest.useRealTimers());

  it('lets small heavy work start beside the large work of another flow, and beside its rest', () => {
    const one = bench(10, 128, { rests: true });
    one.enter('calls', 'light');
    one.enter('calls', 'large', 64);
    one.enter('calls', 'large', 64);
    one.enter('calls', 'small', 8);
    expect([one.count('large'), one.count('small')]).toEqual([1, 1]);
    one.enter('calls', 'larger', 9);
    jest.advanceTimersByTime(200);
    one.finish(3);
    jest.advanceTimersByTime(199);
    one.enter('calls', 'another', 2);
    expect([one.count('large'), one.count('larger'), one.count('another')]).toEqual([1, 0, 1]);
    jest.advanceTimersByTime(1);
    expect([one.count('large'), one.count('larger')]).toEqual([1, 1]);
  });

  it('gives small heavy work room for two pieces, and none of it to a flow that has shared room', () => {
    const one = bench(10, 128, { rests: true });
    one.enter('calls', 'light');
    one.enter('calls', 'large', 64);
    one.enter('calls', 'large', 8);
    one.enter('calls', 'small 1', 8);
    one.enter('calls', 'small 2', 8);
    one.enter('calls', 'small 3', 8);
    expect(['large', 'small 1', 'small 2', 'small 3'].map((flow) => one.count(flow))).toEqual([1, 1, 1, 0]);
  });

  it('takes no shared room for small work that passes, so that the large work whose turn it is finds it', () => {
    const one = bench(10, 128, { rests: true });
    one.enter('calls', 'light');
    one.enter('calls', 'large 1', 64);
    one.enter('calls', 'large 2', 64);
    one.enter('calls', 'small', 8, 2);
    one.finish(2);
    expect([one.count('small'), one.count('large 2')]).toEqual([2, 1]);
  });
});
