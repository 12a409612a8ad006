import type { Answered } from '../../faults/harness/workload';
import { missedBounds, pause, recovery } from './bounds';

/** A request that was answered after `ms`. */
const asked = (askedAt: number, status: number, ms = 10): Answered => ({ askedAt, status, answeredAt: askedAt + ms });

describe('the bounds of a row', () => {
  it('measure the longest time without an answer 200, from the fault to the end', () => {
    const answers = [asked(0, 200), asked(100, 503), asked(700, 200), asked(800, 200)];
    expect(pause(answers, 0, 1000)).toBe(700);
    expect(pause(answers, 0, 2000)).toBe(1190);
    expect(pause([], 0, 500)).toBe(500);
  });

  it('measure the recovery until the last failed request', () => {
    const happened = { repairedAt: 1000 };
    const adds = [asked(900, 503), asked(1400, 504), asked(1500, 200)];
    expect(recovery({ adds, gets: [asked(1600, 503)], from: 0, until: 2000, happened })).toBe(600);
    expect(recovery({ adds: [asked(900, 503)], gets: [], from: 0, until: 2000, happened })).toBe(0);
  });

  it('name each bound that was missed', () => {
    const row = { name: 'row', fault: 'fault', pauseMs: 500, everyRead: true, recoveredMs: 100, refusedMs: 1000 };
    const adds = [asked(0, 200), asked(1500, 503, 1001), asked(9000, 200)];
    const gets = [asked(0, 200), asked(1200, 503), asked(1600, 200), asked(8500, 504)];
    const measured = { adds, gets, from: 0, until: 9100, happened: { repairedAt: 8000, outage: { from: 0, until: 8000 } } };
    expect(missedBounds(row, measured)).toEqual([
      'adds paused for 9.00 s',
      'gets paused for 7.49 s',
      '2 failed reads',
      'recovered after 0.50 s',
      '503 only after 1.50 s',
    ]);
    expect(missedBounds({ name: 'row', fault: 'fault' }, measured)).toEqual([]);
    expect(missedBounds({ name: 'row', fault: 'fault', pauseOfGetsMs: 7000 }, measured)).toEqual(['gets paused for 7.49 s']);
  });
});
