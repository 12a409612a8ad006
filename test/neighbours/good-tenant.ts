import type { Journal, Ask, Told } from '../faults/harness/journal';
import { percentile } from '../faults/harness/load';
import { Child } from './child';
import type { NeighbourSystem } from './neighbour-system';

export const ADDS_PER_SECOND = 50;
export const GETS_PER_SECOND = 10;

/** A get is no ask of the journal: it changes nothing. */
interface Answer {
  kind: 'add' | 'get';
  number: number;
  askedAt: number;
  /** How late the client itself asked. */
  lateMs: number;
  told: Told;
  /** Notifications in the page that are none of its own. */
  strange: number;
  data?: Record<string, unknown>;
}

/** What was measured between two moments. Times in milliseconds; without the machine's part where it does not say otherwise. */
export interface Measured {
  asked: number;
  /** Answers by status, 0 for none. */
  statuses: Record<string, number>;
  addP99: number;
  getP99: number;
  /** Of all answers, with the machine's part. */
  rawP99: number;
  machineP99: number;
  lateP99: number;
}

/** 50 adds and 10 gets a second, in an organization of its own for each run. */
export class GoodTenant {
  readonly documentId = 'document';
  readonly answers: Answer[] = [];
  /** When events of its adds were heard, by notification id. */
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
    good.child = await Child.start('good-tenant.mjs', options, (message: Answer) => message.told && good.answers.push(message));
    return good;
  }

  /** Asks no more; resolves when everything is answered. */
  async stop(): Promise<void> {
    await this.child?.stop();
    this.system.events.removeAllListeners(this.organizationId);
  }

  kill(): Promise<void> | undefined {
    return this.child?.kill();
  }

  /** @param from epoch milliseconds, and the same for until */
  measured(from: number, until = Infinity): Measured {
    const answers = this.answers.filter(({ askedAt }) => askedAt >= from && askedAt < until);
    const statuses: Record<string, number> = {};
    for (const { told } of answers) statuses[told.status] = (statuses[told.status] ?? 0) + 1;
    const own = ({ told }: Answer) => Math.max(0, told.ms - told.noiseMs);
    const of = (kind: Answer['kind']) => answers.filter((answer) => answer.kind === kind);
    const p99 = (values: number[]) => percentile(99, values);
    return {
      asked: answers.length,
      statuses,
      addP99: p99(of('add').map(own)),
      getP99: p99(of('get').map(own)),
      rawP99: p99(answers.map(({ told }) => told.ms)),
      machineP99: p99(answers.map(({ told }) => told.noiseMs)),
      lateP99: p99(answers.map(({ lateMs }) => lateMs)),
    };
  }

  /** Pages in which something of somebody else was. */
  get strangePages(): number {
    return this.answers.filter(({ strange }) => strange > 0).length;
  }

  /** How long after its add the event of a notification was heard, 99 of 100; and how many were not heard so far. */
  eventsOf(from: number, until: number): { p99: number; missing: number } {
    const added = this.answers.filter(
      ({ kind, askedAt, told }) => kind === 'add' && told.status === 200 && askedAt >= from && askedAt < until,
    );
    const delays = added.flatMap(({ number, askedAt }) => {
      const at = this.heard.get(`n${number}`);
      return at === undefined ? [] : [at - askedAt];
    });
    return { p99: percentile(99, delays), missing: added.length - delays.length };
  }

  /** In the form that everything is held against when it is read back. */
  get journal(): Pick<Journal, 'read'> {
    return { read: () => this.answers.filter(({ kind }) => kind === 'add').map((answer) => this.askOf(answer)) };
  }

  private askOf({ askedAt, told, data = {} }: Answer): Ask {
    const mark = data.displayHeadlineMessageTemplate as string;
    return { thing: { kind: 'notification', tenant: 0, mark, data }, askedAt, told };
  }
}
