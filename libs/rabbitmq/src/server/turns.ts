import { Logger } from '@nestjs/common';
import { LRUCache } from 'lru-cache';
import { OPEN_MESSAGES } from '@app/contracts/all-messages';
import type { Delivery } from '../delivery/delivery';
import { FairSchedule, LIGHT, type Work } from './fair-schedule';
import type { TransportMetrics } from '../metrics';

/** What the gateway and the services wait for gets three quarters while it waits, with all four lanes busy. */
const WEIGHTS = { calls: 12 };

/** Of commands: bodies below are light. One with 1000 recipients counts as half of the budget. */
const LIGHT_COMMAND_BYTES = 2048;
const COST_OF_KIBIBYTE = 4;
const COMMAND_BUDGET = 256;

/** Of queries: what is answered with less is light, and each such piece counts as much. Two pages of 4 MiB fill the budget. */
const ANSWER_PIECE_BYTES = 64 * 1024;
const QUERY_BUDGET = 128;
/** What a query of a flow is taken for that has not had an answer yet: half a mebibyte. */
const UNKNOWN_ANSWER_COST = 8;
const MAX_FLOWS = 10_000;
/** How much an answer must be smaller for the next one to be expected that much smaller: one small page says little. */
const FORGETTING = 0.7;

const REPORT_EVERY_MS = 10_000;
const WORTH_A_LINE = 32;

/** Whose turn it is among the deliveries in hand of one kind. */
abstract class Turns {
  private readonly logger = new Logger('RabbitMQ');
  private readonly schedule: FairSchedule;
  private reportedAt = -Infinity;
  private reportedWaiting = 0;

  constructor(
    private readonly kind: 'commands' | 'queries',
    private readonly metrics: TransportMetrics,
    options: { places: number; heavyBudget: number },
  ) {
    this.schedule = new FairSchedule({ ...options, weights: WEIGHTS });
  }

  /** Runs the work of a delivery when it is its turn, and resolves with it. */
  run<T>(delivery: Delivery, handle: () => Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      const finish = () => {
        this.schedule.leave(work, this.costAfter(delivery, work.cost));
        this.report();
      };
      const work: Work = {
        share: delivery.lane,
        flow: flowOf(delivery),
        cost: this.costBefore(delivery),
        start: () => void handle().finally(finish).then(resolve, reject),
      };
      this.schedule.enter(work);
      this.report();
    });
  }

  /** Everything in hand is handled at once from now on: nothing of it is carried out. */
  open(): void {
    this.schedule.open();
  }

  close(): void {
    this.schedule.close();
  }

  protected abstract costBefore(delivery: Delivery): number;
  protected abstract costAfter(delivery: Delivery, before: number): number;

  private report(): void {
    const { waiting } = this.schedule;
    if (waiting === this.reportedWaiting) return;
    this.reportedWaiting = waiting;
    this.metrics.deliveriesWaiting.set({ kind: this.kind }, waiting);
    const now = performance.now();
    if (waiting < WORTH_A_LINE || now - this.reportedAt < REPORT_EVERY_MS) return;
    this.reportedAt = now;
    this.logger.log({ msg: 'deliveries wait for their turn', kind: this.kind, waiting, most: this.schedule.busiest(3) });
  }
}

const OPEN: ReadonlySet<string> = new Set(OPEN_MESSAGES.map(({ pattern }) => pattern));

/**
 * Within a lane broker accounts take turns, for which the broker vouches; within the calls API keys, which the gateway has checked. What services
 * ask each other names API keys that anybody may have made up: there the questions of one kind take turns with those of another.
 */
function flowOf({ lane, context }: Delivery): string {
  if (lane !== 'calls') return context.userId ?? '';
  return OPEN.has(context.pattern) ? `key ${context.apiKey}` : context.pattern;
}

export class CommandTurns extends Turns {
  constructor(metrics: TransportMetrics, places: number) {
    super('commands', metrics, { places, heavyBudget: COMMAND_BUDGET });
  }

  protected costBefore({ message: { content } }: Delivery): number {
    return content.length < LIGHT_COMMAND_BYTES ? LIGHT : Math.ceil(content.length / 1024) * COST_OF_KIBIBYTE;
  }

  protected costAfter(_: Delivery, before: number): number {
    return before;
  }
}

export class QueryTurns extends Turns {
  /** What the next answer of a flow is expected to cost. */
  private readonly expected = new LRUCache<string, number>({ max: MAX_FLOWS });

  constructor(metrics: TransportMetrics, places: number) {
    super('queries', metrics, { places, heavyBudget: QUERY_BUDGET });
  }

  protected costBefore(delivery: Delivery): number {
    return Math.max(LIGHT, this.expected.get(expectationOf(delivery)) ?? UNKNOWN_ANSWER_COST);
  }

  protected costAfter(delivery: Delivery): number {
    const cost = Math.max(LIGHT, delivery.replyBytes / ANSWER_PIECE_BYTES);
    const name = expectationOf(delivery);
    this.expected.set(name, Math.max(cost, (this.expected.get(name) ?? 0) * FORGETTING));
    return cost;
  }
}

const expectationOf = (delivery: Delivery): string => `${delivery.context.pattern} ${delivery.lane} ${flowOf(delivery)}`;
