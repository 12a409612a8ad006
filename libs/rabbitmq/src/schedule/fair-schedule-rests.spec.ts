import { scheduleBench as bench } from '../../test/schedule-bench';
import type { Work } from './scheduled-work';

describe('FairSchedule, beside light work of other flows', () => {
  beforeEach(() => void jest.useFakeTimers());
  afterEach(() => void jest.useRealTimers());

  it('gives heavy work half of the budget, and its room back only after a rest as long as it has run', () => {
    const one = bench(10, 100, { rests: true });
    one.enter('calls', 'light');
    one.enter('calls', 'heavy', 50, 3);
    one.finish();
    expect(one.count('heavy')).toBe(1);
    jest.advanceTimersByTime(200);
    one.finish();
    one.enter('calls', 'light');
    expect([one.count('heavy'), one.count('light')]).toEqual([1, 2]);
    jest.advanceTimersByTime(199);
    expect(one.count('heavy')).toBe(1);
    jest.advanceTimersByTime(1);
    expect(one.count('heavy')).toBe(2);
  });

  it('lets work rest that was found to be heavy', () => {
    const one = bench(10, 100, { rests: true });
    one.enter('calls', 'light');
    one.enter('calls', 'heavy', 1);
    one.finish();
    jest.advanceTimersByTime(100);
    one.finish(1, 50);
    one.enter('calls', 'heavy', 50);
    expect(one.count('heavy')).toBe(1);
    jest.advanceTimersByTime(100);
    expect(one.count('heavy')).toBe(2);
  });

  it('lets heavy work of one flow, or of several, use everything when no light work of others comes', () => {
    const one = bench(10, 100, { rests: true });
    one.enter('calls', 'both', 1);
    one.enter('calls', 'both', 50, 2);
    one.finish();
    jest.advanceTimersByTime(100);
    one.enter('calls', 'both', 50, 2);
    one.finish(2);
    expect(one.count('both')).toBe(5);
    one.enter('calls', 'light');
    jest.advanceTimersByTime(1001);
    one.enter('calls', 'other', 50, 2);
    one.finish(3);
    expect(one.count('other')).toBe(2);
  });

  it('lets large work rest beside light work of its own flow, to which it gives way while that comes', () => {
    const one = bench(10, 100, { rests: true });
    /** Pieces of the cost that run at once, and then those that start without a rest. */
    const atWork = (cost: number, givesWay: boolean) => {
      const before = one.count('both');
      one.enter('calls', 'both', cost, 3, givesWay);
      const atOnce = one.count('both') - before;
      jest.advanceTimersByTime(10);
      one.finish(atOnce);
      const found = [atOnce, one.count('both') - before - atOnce];
      for (let left = 3 - atOnce; left > 0; left--) {
        jest.advanceTimersByTime(1000);
        one.finish();
      }
      jest.advanceTimersByTime(1000);
      return found;
    };
    const besideLight = (cost: number, givesWay: boolean) => {
      one.enter('calls', 'both');
      one.finish();
      return atWork(cost, givesWay);
    };
    expect(besideLight(50, true)).toEqual([1, 0]);
    expect(besideLight(50, false)).toEqual([2, 1]);
    expect(besideLight(49, true)).toEqual([2, 1]);
    one.enter('calls', 'both');
    one.finish();
    jest.advanceTimersByTime(101);
    expect(atWork(50, true)).toEqual([2, 1]);
  });

  it('takes no first piece of heavy work for light work of the flow', () => {
    const one = bench(10, 100, { rests: true });
    one.enter('calls', 'heavy', 1, 1, true);
    jest.advanceTimersByTime(10);
    one.finish(1, 50);
    one.enter('calls', 'heavy', 50, 2, true);
    expect(one.count('heavy')).toBe(3);
  });

  it('gives one flow half of the places, until the light work has stopped', () => {
    const one = bench(10, 100, { rests: true });
    one.enter('calls', 'busy', 1, 14);
    one.enter('calls', 'light');
    expect(one.count('busy')).toBe(10);
    one.finish(5);
    expect([one.count('busy'), one.count('light')]).toEqual([10, 1]);
    one.finish();
    expect(one.count('busy')).toBe(11);
    jest.advanceTimersByTime(1001);
    one.finish();
    expect(one.count('busy')).toBe(14);
  });

  it('gives a flow the other places when the light work has stopped, also while all of its work hangs', () => {
    const one = bench(10, 100, { rests: true });
    one.enter('calls', 'light');
    one.enter('calls', 'busy', 1, 14);
    expect(one.count('busy')).toBe(5);
    jest.advanceTimersByTime(2001);
    expect(one.count('busy')).toBe(9);
  });

  it('lets no flow that has half of the places stop heavy work of others', () => {
    const one = bench(10, 100, { rests: true });
    one.enter('calls', 'busy', 1, 14);
    one.enter('calls', 'light');
    one.finish(6);
    expect(one.count('busy')).toBe(11);
    one.enter('calls', 'heavy', 20, 2);
    expect(one.count('heavy')).toBe(2);
  });

  it('knows what a flow has at work when it has forgotten the flows without work', () => {
    const one = bench(4, 100, { rests: true });
    one.enter('calls', 'light');
    one.enter('calls', 'busy', 1, 2);
    one.finish();
    for (let flow = 0; flow < 10_000; flow++) {
      one.enter('calls', `one of many ${flow}`);
      one.finishLast();
    }
    one.enter('calls', 'busy');
    expect(one.count('busy')).toBe(2);
  });

  it('lets light work pass work of its flow that has become heavy while it waited', () => {
    const one = bench(3, 100, { rests: true });
    const started: string[] = [];
    const enter = (name: string, flow: string, costNow: Work['costNow']) => {
      const names = { share: 'calls', flow, owner: flow, isOnlyAnswered: false };
      const work: Work = { ...names, costNow, givesWay: false, start: () => void started.push(name) };
      one.schedule.enter(work);
      return work;
    };
    const first = ['a', 'b', 'c', 'd', 'e'].map((name) => enter(name, 'both', (isBesideLight) => (isBesideLight ? 50 : 1)));
    enter('light of others', 'other', () => 1);
    enter('light', 'both', () => 1);
    first.slice(0, 3).forEach((work) => one.schedule.leave(work));
    expect(started).toEqual(['a', 'b', 'c', 'light of others', 'd', 'light']);
  });

  it('lets hung work rest for a second', () => {
    const one = bench(10, 100, { rests: true });
    one.enter('calls', 'heavy', 50, 2);
    jest.advanceTimersByTime(60_000);
    one.enter('calls', 'light');
    one.enter('calls', 'heavy', 50);
    one.finish(2);
    jest.advanceTimersByTime(1000);
    expect(one.count('heavy')).toBe(3);
  });

  it('keeps the room for the higher cost, when the work was expected to be heavier than it was', () => {
    const one = bench(10, 100, { rests: true });
    one.enter('calls', 'heavy', 50);
    one.enter('calls', 'light');
    jest.advanceTimersByTime(100);
    one.finish(1, 1);
    one.enter('calls', 'heavy', 50);
    expect(one.count('heavy')).toBe(1);
    jest.advanceTimersByTime(100);
    expect(one.count('heavy')).toBe(2);
  });

  it('protects light work that comes all the time, not only after the first of it', () => {
    const one = bench(10, 100, { rests: true });
    for (let time = 0; time < 3; time++) {
      one.enter('calls', 'light');
      jest.advanceTimersByTime(600);
    }
    one.enter('calls', 'heavy', 50, 2);
    expect(one.count('heavy')).toBe(1);
  });

  it('has room for a piece of half of the budget, whatever fractions the costs before had', () => {
    const one = bench(10, 128, { rests: true });
    for (const cost of [1.496, 21.764, 42.556]) one.enter('calls', 'heavy', cost);
    one.finish(3);
    one.enter('calls', 'light');
    one.enter('calls', 'heavy', 64);
    expect(one.count('heavy')).toBe(4);
  });

  it('lets a heavy piece of the others begin beside floods of light ones and of heavy calls', () => {
    const preference = { share: 'calls', others: ['lane'], othersMost: 2, forMs: 60_000 };
    const one = bench(10, 100, { preference, weights: { calls: 12 } });
    one.enter('calls', 'heavy call', 50, 20);
    one.enter('lane', 'light', 1, 20);
    one.enter('lane', 'heavy', 50);
    one.finish(16);
    expect(one.count('heavy')).toBe(1);
  });

  it('lets the others rest as well while work of the preferred share comes', () => {
    const preference = { share: 'calls', others: ['lane'], othersMost: 2, forMs: 1000 };
    const one = bench(10, 100, { preference, rests: true });
    one.enter('calls', 'key');
    one.enter('lane', 'direct', 1, 5);
    expect(one.count('direct')).toBe(2);
    jest.advanceTimersByTime(50);
    one.finish(3);
    expect(one.count('direct')).toBe(2);
    jest.advanceTimersByTime(50);
    expect(one.count('direct')).toBe(4);
    jest.advanceTimersByTime(1000);
    one.finish(2);
    expect(one.count('direct')).toBe(5);
  });

  it('lets the others rest for a least time, and only while work of the preferred share comes', () => {
    const preference = { share: 'calls', others: ['lane'], othersMost: 1, forMs: 1000, leastRestMs: 20 };
    const one = bench(10, 100, { preference, rests: true });
    one.enter('calls', 'key');
    one.finish();
    one.enter('lane', 'direct', 1, 10);
    jest.advanceTimersByTime(1);
    one.finish();
    jest.advanceTimersByTime(19);
    expect(one.count('direct')).toBe(1);
    jest.advanceTimersByTime(1);
    expect(one.count('direct')).toBe(2);
    jest.advanceTimersByTime(1000);
    one.finish();
    expect(one.count('direct')).toBe(10);
  });
});
