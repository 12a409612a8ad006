import { LaterLook } from './later-look';

describe(LaterLook.name, () => {
  let looks: number[];
  let later: LaterLook;
  beforeEach(() => {
    jest.useFakeTimers();
    const from = performance.now();
    looks = [];
    later = new LaterLook(5000, () => looks.push(performance.now() - from));
  });
  afterEach(() => {
    later.stop();
    jest.useRealTimers();
  });

  it('looks once for many wishes of one moment', () => {
    later.want();
    later.want();
    jest.advanceTimersByTime(20_000);
    expect(looks).toEqual([5000]);
  });

  it('looks when the oldest is old enough, and again for what may be younger', () => {
    later.want(2000);
    jest.advanceTimersByTime(20_000);
    expect(looks).toEqual([3000, 5000]);
  });
});
