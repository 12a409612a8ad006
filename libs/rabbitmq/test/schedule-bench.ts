import { FairSchedule } from '../src/schedule/fair-schedule';
import type { FairScheduleOptions, Work } from '../src/schedule/scheduled-work';

/** Drives a schedule by hand: `finish()` ends the work that has run longest. */
class ScheduleBench {
  readonly started: string[] = [];
  isOnlyAnswered = false;
  private readonly running: Work[] = [];

  constructor(readonly schedule: FairSchedule) {}

  enter(share: string, flow: string, cost = 1, times = 1, givesWay = false): void {
    for (let time = 0; time < times; time++) {
      const work: Work = {
        share,
        flow,
        owner: flow,
        costNow: () => cost,
        givesWay,
        isOnlyAnswered: this.isOnlyAnswered,
        start: () => {
          this.started.push(flow);
          this.running.push(work);
        },
      };
      this.schedule.enter(work);
    }
  }

  finish(times = 1, cost?: number): void {
    for (let time = 0; time < times; time++) {
      const work = this.running.shift();
      if (!work) throw new Error('nothing runs');
      this.schedule.leave(work, cost);
    }
  }

  /** Ends the work that began last. */
  finishLast(): void {
    this.schedule.leave(this.running.pop()!);
  }

  count(flow: string): number {
    return this.started.filter((one) => one === flow).length;
  }
}

export const scheduleBench = (places: number, heavyBudget = 1000, options: Partial<FairScheduleOptions> = {}) =>
  new ScheduleBench(new FairSchedule({ places, heavyBudget, ...options }));
