import type { Journal, Ask, Answer } from '../faults/harness/journal';
import { percentile } from '../faults/harness/load';
import { Child } from './child';
import type { NeighbourSystem } from './neighbour-system';

export const ADDS_PER_SECOND = 50;
export const GETS_PER_SECOND = 10;

/** An answer. A get is not in the journal, because it changes nothing. `users`: the user that is added before all. */
interface Answered {
  kind: 'add' | 'get' | 'users';
  number: number;
  askedAt: number;
  /** Delay of the client itself. */
  lateMs: number;
  answer: Answer;
  /** Notifications in the page that belong to other tenants. */
  strange: number;
  data?: Record<string, unknown>;
}

/** Measurements of a period. Times in milliseconds, without the delay by the machine itself unless noted. */
export interface Measured {
  asked: number;
  /** Answers by status; 0: no answer. */
  statuses: Record<string, number>;
  addP99: number;
  getP99: number;
  /** For all answers, with the delay by the machine. */
  rawP99: number;
  machineP99: number;
  lateP99: number;
}

/** 50 adds and 10 gets per second, half of these for a user, in a new organization for each run. */
export class GoodTenant {
  readonly documentId = 'document';
  readonly answers: Answered[] = [];
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
    good.child = await Child.start(
      'good-tenant.mjs',
      options,
      (message: Answered) => message.answer && good.answers.push(message),
    );
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
    const statuses: Record<string, number> = {};
    for (const { answer } of answers) statuses[answer.status] = (statuses[answer.status] ?? 0) + 1;
    const own = ({ answer }: Answered) => Math.max(0, answer.ms - answer.noiseMs);
    const of = (kind: Answered['kind']) => answers.filter((answer) => answer.kind === kind);
    const p99 = (values: number[]) => percentile(99, values);
    return {
      asked: answers.length,
      statuses,
      addP99: p99(of('add').map(own)),
      getP99: p99(of('get').map(own)),
      rawP99: p99(answers.map(({ answer }) => answer.ms)),
      machineP99: p99(answers.map(({ answer }) => answer.noiseMs)),
      lateP99: p99(answers.map(({ lateMs }) => lateMs)),
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
    return { read: () => this.answers.filter(({ kind }) => kind !== 'get').map((answer) => this.askOf(answer)) };
  }

  private askOf({ kind, number, askedAt, answer, data = {} }: Answered): Ask {
    const mark = `${this.organizationId} mark ${number}`;
    return { thing: { kind: kind === 'users' ? 'user' : 'notification', tenant: 0, mark, data }, askedAt, answer };
  }
}
