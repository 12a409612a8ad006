import { within } from '@app/runtime/within';
import type { Delivery } from '../delivery/delivery';
import type { TransportMetrics } from '../metrics';
import { publisherOf } from './letter-quota';
import { LANES } from '../topology/topology';
import { FairSchedule } from '../schedule/fair-schedule';
import { LIGHT, type Work } from '../schedule/scheduled-work';
import { WaitingReport } from '../schedule/waiting-report';

/** Their cost is at the broker, which everybody shares: it writes each letter to a queue and a log, and confirms it. */
const AT_ONCE = 2;
const LEAST_REST_MS = 5;
/** A letter that the broker does not take must not stop the letters of others. */
const MOST_TURN_MS = 100;

/**
 * Turns of the letters of refused commands. Of the lanes few are written at a time, also while no call comes: another process may have calls. The
 * accounts take turns. A letter without a turn waits in this process, and more behind it in its lane.
 */
export class LetterTurns {
  private readonly schedule = new FairSchedule({
    places: Infinity,
    heavyBudget: 2 * LIGHT,
    preference: { share: 'calls', others: LANES, othersMost: AT_ONCE, forMs: Infinity, leastRestMs: LEAST_REST_MS },
    rests: true,
    afterRest: () => this.waiting.update(),
  });
  private readonly waiting: WaitingReport;

  constructor(metrics: TransportMetrics) {
    this.waiting = new WaitingReport('letters', this.schedule, metrics);
  }

  /** Writes a letter when it is its turn, and resolves with the result. */
  run<T>(delivery: Delivery, write: () => Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      const publisher = publisherOf(delivery);
      const work: Work = {
        share: delivery.exchange,
        flow: publisher,
        owner: publisher,
        costNow: () => LIGHT,
        givesWay: false,
        isOnlyAnswered: false,
        start: () => {
          const written = write();
          written.then(resolve, reject);
          void within(MOST_TURN_MS, written).then(() => {
            this.schedule.leave(work);
            this.waiting.update();
          });
        },
        started: undefined,
      };
      this.schedule.enter(work);
      this.waiting.update();
    });
  }
}
