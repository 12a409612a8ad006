import { scheduleBench as bench } from '../../test/schedule-bench';
import type { Work } from './scheduled-work';

describe('FairSchedule', () => {
  it('starts everything at once while there is room, and lets one flow use all of it', () => {
    const one = bench(10);
    one.enter('calls', 'a', 1, 12);
    expect(one.started).toHaveLength(10);
    expect(one.schedule.waiting).toBe(2);
    one.finish(2);
    expect(one.started).toHaveLength(12);
  });

  it('lets flows take turns, even when one of them has a long backlog', () => {
    const one = bench(2);
    one.enter('calls', 'greedy', 1, 100);
    one.enter('calls', 'modest', 1, 5);
    one.finish(12);
    expect(one.count('modest')).toBe(5);
    expect(one.count('greedy')).toBe(9);
  });

  it('gives shares their weight while both wait, whatever the number of flows', () => {
    const one = bench(1, 1000, { weights: { calls: 12 } });
    for (let flow = 0; flow < 30; flow++) one.enter('calls', `key ${flow}`, 1, 100);
    for (const lane of ['lane 0', 'lane 1', 'lane 2', 'lane 3']) one.enter(lane, lane, 1, 500);
    one.finish(1600);
    expect(one.count('lane 0')).toBeGreaterThanOrEqual(99);
    expect(one.count('lane 0')).toBeLessThanOrEqual(101);
    expect(one.count('key 3')).toBeGreaterThanOrEqual(39);
  });

  it('charges heavy work its cost', () => {
    const one = bench(1);
    one.enter('calls', 'heavy', 10, 50);
    one.enter('calls', 'light', 1, 50);
    one.finish(55);
    expect(one.count('light')).toBe(50);
    expect(one.count('heavy')).toBeLessThanOrEqual(7);
  });

  it('charges the actual cost when it is known afterwards', () => {
    const one = bench(1);
    one.enter('calls', 'a', 1, 20);
    one.enter('calls', 'b', 1, 20);
    one.finish(1, 10);
    one.finish(9);
    expect(one.count('b')).toBeGreaterThanOrEqual(9);
  });

  it('limits heavy work, lets light work pass, and keeps the turn of heavy work', () => {
    const one = bench(10, 100);
    one.enter('calls', 'heavy', 500, 3);
    expect(one.count('heavy')).toBe(2);
    one.enter('calls', 'smaller', 20);
    expect(one.count('smaller')).toBe(0);
    one.enter('calls', 'light');
    expect(one.count('light')).toBe(1);
    one.finish();
    expect([one.count('heavy'), one.count('smaller')]).toEqual([2, 1]);
    one.finish(2);
    expect(one.count('heavy')).toBe(3);
  });

  it('lets light work pass heavy work of its own flow that has no room', () => {
    const one = bench(10, 100);
    one.enter('calls', 'both', 50, 4);
    one.enter('calls', 'both', 1, 9);
    expect([one.count('both'), one.schedule.waiting]).toEqual([10, 3]);
    one.finish();
    expect([one.count('both'), one.schedule.waiting]).toEqual([11, 2]);
  });

  it('looks only at flows with waiting work', () => {
    const one = bench(2);
    for (let flow = 0; flow < 1000; flow++) {
      one.enter('calls', `one of many ${flow}`);
      one.finish();
    }
    one.enter('calls', 'busy', 1, 4);
    const sort = jest.spyOn(Array.prototype, 'sort');
    try {
      one.finish();
      expect(sort.mock.contexts.map((sorted) => (sorted as unknown[]).length)).toEqual([1, 1]);
    } finally {
      sort.mockRestore();
    }
  });

  it('gives an idle flow no credit', () => {
    const one = bench(1);
    one.enter('calls', 'busy', 1, 1000);
    one.finish(500);
    one.enter('calls', 'late', 1, 100);
    one.finish(20);
    expect(one.count('late')).toBeGreaterThanOrEqual(9);
    expect(one.count('late')).toBeLessThanOrEqual(11);
  });

  it('asks for the cost when the work could start, not when it came', () => {
    const one = bench(2, 100);
    let cost = 1;
    const started: string[] = [];
    const enter = (name: string) => {
      const names = { share: 'calls', flow: name, owner: name, isOnlyAnswered: false };
      const work: Work = { ...names, costNow: () => cost, givesWay: false, start: () => void started.push(name) };
      one.schedule.enter(work);
      return work;
    };
    const [first] = ['a', 'b', 'c', 'd'].map(enter);
    cost = 60;
    one.schedule.leave(first);
    // One piece counts for half of the budget at most, so two would fit: a light one and a heavy one run.
    expect(started).toEqual(['a', 'b', 'c']);
  });

  it('drops waiting work that is over, and starts what has waited behind it', () => {
    const one = bench(10, 100);
    const events: string[] = [];
    let isOver = false;
    const enter = (name: string, cost: number) =>
      one.schedule.enter({
        ...{ share: 'calls', flow: 'one', owner: 'one', isOnlyAnswered: false },
        costNow: () => cost,
        givesWay: false,
        start: () => void events.push(`${name} starts`),
        dropIfOver: () => {
          if (isOver && name !== 'kept') events.push(`${name} is dropped`);
          return isOver && name !== 'kept';
        },
      });
    enter('running', 30);
    enter('too heavy', 50);
    enter('too heavy', 50);
    enter('kept', 20);
    one.schedule.dropOver();
    expect([events, one.schedule.waiting]).toEqual([['running starts', 'too heavy starts'], 2]);
    isOver = true;
    one.schedule.dropOver();
    expect(events.slice(2)).toEqual(['too heavy is dropped', 'kept starts']);
    expect([one.schedule.running, one.schedule.waiting]).toEqual([3, 0]);
  });

  it('leaves room for the preferred share for some time after its work has come, and lets the others go on', () => {
    const one = bench(10, 100, { preference: { share: 'calls', others: ['lane'], othersMost: 3, forMs: 60_000 } });
    one.enter('lane', 'before', 1, 5);
    expect(one.count('before')).toBe(5);
    one.enter('calls', 'key');
    one.finish(6);
    one.enter('lane', 'light', 1, 5);
    expect(one.count('light')).toBe(3);
    one.finish(3);
    expect(one.count('light')).toBe(5);
    one.finish(2);
    one.enter('lane', 'heavy', 50, 2);
    expect(one.count('heavy')).toBe(1);
    one.enter('calls', 'heavy call', 50);
    expect(one.count('heavy call')).toBe(1);
    one.finish(2);
    expect(one.count('heavy')).toBe(2);
  });

  it('gives the others everything when no work of the preferred share has come for a time', () => {
    const one = bench(10, 100, { preference: { share: 'calls', others: ['lane'], othersMost: 3, forMs: -1 } });
    one.enter('calls', 'key');
    one.enter('lane', 'heavy', 50, 3);
    one.enter('lane', 'light', 1, 9);
    expect([one.count('heavy'), one.count('light')]).toEqual([2, 7]);
  });

  it('lets work wait for its turn that is executed after it was open', () => {
    const one = bench(2);
    one.enter('0', 'a', 1, 3);
    one.enter('0', 'a', 500, 3);
    one.schedule.open();
    one.enter('0', 'b', 1, 2);
    expect([one.started.length, one.schedule.waiting]).toEqual([2, 6]);
    one.isOnlyAnswered = true;
    one.enter('calls', 'c');
    expect(one.count('c')).toBe(1);
    one.schedule.close();
    one.finish(8);
    expect([one.started.length, one.schedule.waiting]).toEqual([9, 0]);
  });

  it('starts all waiting work that is only answered while it is open', () => {
    const one = bench(1);
    one.isOnlyAnswered = true;
    one.enter('calls', 'a', 1, 5);
    one.schedule.open();
    one.enter('calls', 'a');
    expect(one.started).toHaveLength(6);
    one.schedule.close();
    one.enter('calls', 'a');
    expect(one.schedule.waiting).toBe(1);
    one.finish(6);
    expect(one.schedule.waiting).toBe(0);
  });
});
