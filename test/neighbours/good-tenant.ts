import type { Journal, Ask, Answer } from '../faults/harness/journal';
import { percentile } from '../faults/harness/load';
import { Child } from './child';
import type { NeighbourSystem } from './neighbour-system';

export const ADDS_PER_SECOND = 50;
export const GETS_PER_SECOND = 10;

/** An answer. A get is not in the journal, because it changes nothing. `users`: the user that is added before all. */
interface Answered {
  kind: 'add' | 'get' | 'users' | 'other';
  number: number;
  askedAt: number;
  /** Delay of the client itself. */
  lateMs: number;
  answer: Answer;
  /** Notifications in the page that belong to other tenants. */
  strange: number;
  data?: Record<string, unknown>;
}

/** A user whom it added and removed, read until nothing was found. */
interface Removal {
  number: number;
  askedAt: number;
  /** 200, or the first other answer to one of these calls. */
  status: number;
  /** Whether the user found the notification to all before. */
  found: boolean;
  /** From the answer to the removal until the first read that found nothing. */
  seenMs: number;
  noiseMs: number;
}

/** Measurements of a period. Times in milliseconds, without the delay by the machine itself unless noted. */
export interface Measured {
  asked: number;
  /** Answers by status; 0: no answer. */
  statuses: Record<string, number>;
  /** Different texts of errors, by status. */
  errors: Record<string, string[]>;
  addP99: number;
  getP99: number;
  /** For all answers, with the delay by the machine. */
  rawP99: number;
  machineP99: number;
  lateP99: number;
  removals: {
    /** Answers by status, as above. */
    statuses: Record<string, number>;
    longest: number;
    median: number;
    /** Added users who did not find what all users have. */
    missed: number;
  };
}

/** 50 adds and 10 gets per second, half of these for a user, in a new organization for each run. */
export class GoodTenant {
  readonly documentId = 'document';
  readonly answers: Answered[] = [];
  private readonly removals: Removal[] = [];
  /** Arrival times of the events of its adds, by notification id. */
  private readonly heard = new Map<string, number>();
  private child?: Child;

  private constructor(
    private readonly system: NeighbourSystem,
    readonly organizationId: string,
  ) {}

  static async start(system: NeighbourSystem, name: string): Promise<GoodTenant> {
    const good = new GoodTenant(system, `good tenant beside ${name}`);
    system.events.on(good.organizationId, (id: string) => good.heard.has(id) || good.heard.set(id, Date.now()));
    const options = {
      url: system.gatewayUrl,
      headers: system.tenants[0],
      organizationId: good.organizationId,
      documentId: good.documentId,
      addsPerSecond: ADDS_PER_SECOND,
      getsPerSecond: GETS_PER_SECOND,
    };
    good.child = await Child.start('good-tenant.mjs', options, (message: Answered & { removal?: Removal }) => {
      if (message.removal) good.removals.push(message.removal);
      else if (message.answer) good.answers.push(message);
    });
    return good;
  }

  /** Stops sending; resolves when every call is answered. */
  async stop(): Promise<void> {
    await this.child?.stop();
    this.system.events.removeAllListeners(this.organizationId);
  }

  kill(): Promise<void> | undefined {
    return this.child?.kill();
  }

  /** @param from in epoch milliseconds, like `until` */
  measured(from: number, until = Infinity): Measured {
    const answers = this.answers.filter(({ askedAt }) => askedAt >= from && askedAt < until);
    const own = ({ answer }: Answered) => Math.max(0, answer.ms - answer.noiseMs);
    const of = (kind: Answered['kind']) => answers.filter((answer) => answer.kind === kind);
    const p99 = (values: number[]) => percentile(99, values);
    return {
      asked: answers.length,
      statuses: countsOf(answers.map(({ answer }) => answer.status)),
      errors: errorsOf(answers),
      addP99: p99(of('add').map(own)),
      getP99: p99(of('get').map(own)),
      rawP99: p99(answers.map(({ answer }) => answer.ms)),
      machineP99: p99(answers.map(({ answer }) => answer.noiseMs)),
      lateP99: p99(answers.map(({ lateMs }) => lateMs)),
      removals: this.removalsOf(from, until),
    };
  }

  private removalsOf(from: number, until: number): Measured['removals'] {
    const removals = this.removals.filter(({ askedAt }) => askedAt >= from && askedAt < until);
    const seen = removals.filter(({ status }) => status === 200).map(({ seenMs, noiseMs }) => Math.max(0, seenMs - noiseMs));
    return {
      statuses: countsOf(removals.map(({ status }) => status)),
      longest: Math.max(0, ...seen),
      median: percentile(50, seen),
      missed: removals.filter(({ found }) => !found).length,
    };
  }

  /** Number of pages with notifications of other tenants. */
  get strangePages(): number {
    return this.answers.filter(({ strange }) => strange > 0).length;
  }

  /** Time from an add to the arrival of its event (99th percentile), and the number of events that have not arrived. */
  eventsOf(from: number, until: number): { p99: number; missing: number } {
    const added = this.answers.filter(
      ({ kind, askedAt, answer }) => kind === 'add' && answer.status === 200 && askedAt >= from && askedAt < until,
    );
    const delays = added.flatMap(({ number, askedAt }) => {
      const at = this.heard.get(`n${number}`);
      return at === undefined ? [] : [at - askedAt];
    });
    return { p99: percentile(99, delays), missing: added.length - delays.length };
  }

  /** All that it has added, in the format of the journal, for the verification. */
  get journal(): Pick<Journal, 'read'> {
    return {
      read: () => this.answers.filter(({ kind }) => kind === 'add' || kind === 'users').map((answer) => this.askOf(answer)),
    };
  }

  private askOf({ kind, number, askedAt, answer, data = {} }: Answered): Ask {
    const mark = `${this.organizationId} mark ${number}`;
    return { thing: { kind: kind === 'users' ? 'user' : 'notification', tenant: 0, mark, data }, askedAt, answer };
  }
}

function errorsOf(answers: readonly Answered[]): Record<string, string[]> {
  const errors: Record<string, string[]> = {};
  for (const { answer } of answers)
    if (answer.error && !errors[answer.status]?.includes(answer.error)) (errors[answer.status] ??= []).push(answer.error);
  return errors;
}

function countsOf(statuses: readonly number[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const status of statuses) counts[status] = (counts[status] ?? 0) + 1;
  return counts;
}
