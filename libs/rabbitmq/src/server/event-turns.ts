import type { Delivery } from '../delivery/delivery';
import type { TransportMetrics } from '../metrics';
import { costOfBody } from './cost-of-body';
import { COMMAND_BUDGET, Turns } from './turns';

/** Leaves connections to the database for commands and queries. */
const EVENT_PLACES = 8;

/**
 * Events of users take turns by API key. They never rest: what a tenant causes would wait in one queue in front of the removals of others. Copying an
 * event takes less than the call that causes it, and that has its turns in users.
 */
export class EventTurns extends Turns {
  constructor(metrics: TransportMetrics) {
    super('events', metrics, { places: EVENT_PLACES, heavyBudget: COMMAND_BUDGET });
  }

  protected isExpected(): boolean {
    return false;
  }

  protected costBefore(delivery: Delivery): number {
    return costOfBody(delivery);
  }

  protected givesWay(): boolean {
    return false;
  }

  protected costAfter(): undefined {
    return undefined;
  }
}
