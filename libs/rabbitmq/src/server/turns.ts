import { ALL_MESSAGES, OPEN_MESSAGES } from '@app/contracts/all-messages';
import { ListMemberships } from '@app/contracts/memberships.list';
import type { Delivery } from '../delivery/delivery';
import { costOfBody } from './cost-of-body';
import { ExpectedCosts } from '../schedule/expected-costs';
import { FairSchedule } from '../schedule/fair-schedule';
import type { TransportMetrics } from '../metrics';
import type { QueueKind } from '../topology/consumed-queues';
import { LANES } from '../topology/topology';
import { LIGHT, type FairScheduleOptions, type Work } from '../schedule/scheduled-work';
import { WaitingReport } from '../schedule/waiting-report';

/** Calls get three quarters of the places when all four lanes (weight 1 each) are busy. */
const WEIGHTS = { calls: 12 };

/** As many recipients cost 1 when they are added, too. */
const CHANGED_ROWS = 8;
/** A command that states rows has a statement and a commit of its own: 16 at a time use all connections of a process to the database. */
const OWN_STATEMENT = 16;
const COMMAND_BUDGET = 256;

/** Queries cost 1 for each such piece of their answer; a smaller answer is light. Two pages of 4 MiB fill the budget. */
const ANSWER_PIECE_BYTES = 64 * 1024;
/** Looking at this number of rows takes about as long as answering such a piece. */
const ROWS_LOOKED_AT = 250;
const QUERY_BUDGET = 128;

/** Work that the database has cancelled has looked at an unknown number of rows. A heavy page takes this time for each 1 of its cost. */
const CANCELLED_MS = 2;

/** For this time after a call, the lanes together run a few deliveries, and one that is heavy. */
const CALLS_PREFERRED_MS = 1000;
const COMMANDS_BESIDE_CALLS = { most: 32, part: 1 / 4 };
const QUERIES_BESIDE_CALLS = 2;

/** `isNews`: whether deliveries that wait are heavy or light since it is known. `again`: the part that is expected of the next one, too. */
type ActualCost = Record<'cost' | 'again', number> & { isNews: boolean };

/**
 * While calls come, lanes together run few deliveries. Events never rest: what a tenant causes would wait in one queue in front of the removals of
 * others. Copying an event takes less than the call that causes it, and that has its turns in users.
 */
function besideCalls(kind: QueueKind, places: number): Pick<FairScheduleOptions, 'preference' | 'rests'> {
  if (kind === 'events') return {};
  const { most, part } = COMMANDS_BESIDE_CALLS;
  const othersMost = kind === 'queries' ? QUERIES_BESIDE_CALLS : Math.max(1, Math.min(most, Math.floor(places * part)));
  return {
    preference: { share: 'calls', others: LANES, othersMost, forMs: CALLS_PREFERRED_MS },
    rests: true,
  };
}

/** Fair schedule of the deliveries of one kind. */
export class Turns {
  private readonly schedule: FairSchedule;
  private readonly waiting: WaitingReport;
  private readonly running: { set(value: number): void };
  /** Expected cost of the next delivery, by flow and pattern. */
  private readonly expected = new ExpectedCosts();
  private readonly budget: number;

  /** @param places most deliveries that run at once */
  constructor(
    private readonly kind: QueueKind,
    metrics: TransportMetrics,
    places: number,
  ) {
    this.budget = kind === 'queries' ? QUERY_BUDGET : COMMAND_BUDGET;
    const options = { places, heavyBudget: this.budget, weights: WEIGHTS, ...besideCalls(kind, places) };
    this.schedule = new FairSchedule({ ...options, afterRest: () => this.report() });
    metrics.deliveriesRunningLimit.set({ kind }, places);
    this.waiting = new WaitingReport(kind, this.schedule, metrics);
    this.running = metrics.deliveriesRunning.labels(kind);
  }

  /** Runs the work of a delivery when it is its turn. @returns its result; undefined when the delivery was forgotten before, see {@link dropForgotten} */
  run<T>(delivery: Delivery, handle: () => Promise<T>): Promise<T | undefined> {
    return new Promise((resolve, reject) => {
      const name = expectationOf(delivery);
      let isTried = false;
      const finish = () => {
        const { cost, isNews, again } = this.costAfter(delivery) ?? {};
        if (isTried) this.expected.endTry(name);
        this.schedule.leave(work, cost, isNews, again);
        this.report();
      };
      const work: Work = {
        share: delivery.exchange,
        flow: flowOf(delivery),
        owner: ownerOf(delivery),
        costNow: (isBesideLight) => this.costBefore(delivery, isBesideLight),
        givesWay: changesRows(delivery),
        isOnlyAnswered: delivery.mayBeRefused,
        start: () => {
          isTried = this.isExpected(delivery) && this.expected.try(name);
          void handle().finally(finish).then(resolve, reject);
        },
        dropIfOver: () => {
          if (delivery.isForgotten) resolve(undefined);
          return delivery.isForgotten;
        },
        started: undefined,
      };
      this.schedule.enter(work);
      this.report();
    });
  }

  /** From now on deliveries that may be refused are handled at once, because none of them is executed. */
  open(): void {
    this.schedule.open();
    this.report();
  }

  close(): void {
    this.schedule.close();
  }

  /** A channel has ended. Its waiting deliveries would wait beside their redeliveries, and every further channel would add as many. */
  dropForgotten(): void {
    this.schedule.dropOver();
    this.report();
  }

  /** Whether only the latest deliveries of its flow and pattern say what it may cost. */
  private isExpected(delivery: Delivery): boolean {
    return this.kind === 'queries' || changesRows(delivery);
  }

  /** @param isBesideLight whether others have light work */
  private costBefore(delivery: Delivery, isBesideLight: boolean): number {
    const cost = this.kind === 'queries' ? LIGHT : costOfBody(delivery);
    return this.isExpected(delivery) ? Math.max(cost, this.costExpected(delivery, isBesideLight)) : cost;
  }

  /** @returns undefined: the expected cost */
  private costAfter(delivery: Delivery): ActualCost | undefined {
    return this.kind === 'queries' ? this.costOfQuery(delivery) : this.costOfCommand(delivery);
  }

  private costOfCommand(delivery: Delivery): ActualCost | undefined {
    const { context, cancelledAfterMs } = delivery;
    const least = Math.max(costOfBody(delivery), OWN_STATEMENT);
    // Additions of several tenants share a statement.
    if (cancelledAfterMs !== undefined && this.isExpected(delivery))
      return this.expect(delivery, Math.max(least, cancelledAfterMs / CANCELLED_MS));
    if (context.rows === undefined) return undefined;
    return this.expect(delivery, Math.max(least, context.rows / CHANGED_ROWS));
  }

  private costOfQuery(delivery: Delivery): ActualCost | undefined {
    const { replyBytes, context, cancelledAfterMs } = delivery;
    if (cancelledAfterMs !== undefined) return this.expect(delivery, Math.max(LIGHT, cancelledAfterMs / CANCELLED_MS));
    const { rows = 0, oneTimeRows = 0 } = context;
    const costOf = (looked: number) => Math.max(LIGHT, (replyBytes ?? 0) / ANSWER_PIECE_BYTES, looked / ROWS_LOOKED_AT);
    const cost = costOf(rows);
    // One that had expired, or that failed before it looked at such rows, says nothing about the next one.
    if (replyBytes === undefined && rows === oneTimeRows) return rows > 0 ? { cost, isNews: false, again: LIGHT } : undefined;
    return { ...this.expect(delivery, costOf(rows - oneTimeRows)), cost };
  }

  /**
   * The cost of the latest deliveries of its flow and pattern. The first delivery finds out what the others cost, and these wait for it like the
   * most expensive ones. A flow that tenants share must not stay heavy because of one of them.
   */
  private costExpected(delivery: Delivery, isBesideLight: boolean): number {
    const name = expectationOf(delivery);
    const expected = isBesideLight && isOfOne(delivery) ? this.expected.largest(name) : this.expected.recent(name);
    return expected ?? (this.expected.mayTry(name) ? LIGHT : this.budget / 2);
  }

  /** @param cost is now expected of the next one */
  private expect(delivery: Delivery, cost: number): ActualCost {
    return { cost, isNews: this.expected.add(expectationOf(delivery), cost), again: cost };
  }

  private report(): void {
    this.running.set(this.schedule.running);
    this.waiting.update();
  }
}

/** Memberships are asked for only when the copy has notifications of the API key, after the rights of the publisher were checked. */
const OF_PROVED_KEYS: ReadonlySet<string> = new Set([...OPEN_MESSAGES, ListMemberships].map(({ pattern }) => pattern));

/**
 * Name of the flow that takes turns. In a lane: the broker account, which the broker has checked. In the calls: the API key, which the gateway
 * has checked. Other queries between services carry API keys that a publisher may have invented, so their flow is the pattern. In events: the API
 * key, which comes from the outbox of a service.
 */
function flowOf({ exchange, context }: Delivery): string {
  if (exchange === 'events.own') return `key ${context.apiKey}`;
  if (exchange !== 'calls') return context.userId ?? '';
  return OF_PROVED_KEYS.has(context.pattern) ? `key ${context.apiKey}` : context.pattern;
}

/** Whether its flow is that of one tenant or account. */
const isOfOne = ({ exchange, context }: Delivery): boolean => exchange !== 'calls' || OF_PROVED_KEYS.has(context.pattern);

/** A tenant's own questions between the services are its own work. Questions about credentials, and checks of the services, name no tenant. */
function ownerOf({ exchange, context: { userId, apiKey } }: Delivery): string | undefined {
  if (exchange !== 'calls') return `account ${userId}`;
  return apiKey === '' ? undefined : `key ${apiKey}`;
}

const CHANGING_ROWS: ReadonlySet<string> = new Set(
  ALL_MESSAGES.filter(({ changesRows }) => changesRows).map(({ pattern }) => pattern),
);

/** A deletion of a thousand rows is one long statement, whatever its body. Large bodies are written in batches, as fast as a tenant sends them. */
const changesRows = ({ context }: Delivery): boolean => CHANGING_ROWS.has(context.pattern);

const expectationOf = (delivery: Delivery): string => `${delivery.context.pattern} ${delivery.exchange} ${flowOf(delivery)}`;
