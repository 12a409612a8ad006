/** A piece of work that waits for its turn. */
export interface Work {
  /** Group of flows with a weight, such as a lane. */
  readonly share: string;
  /** Flows of a share take turns. A flow is, for example, an API key. */
  readonly flow: string;
  /** Expected cost; 1 is light work. It is asked whenever the work could start, because earlier work of the flow may have changed it. */
  costNow(): number;
  /** Starts it. Must not throw. */
  start(): void;
  /** Set by the schedule. */
  started?: Started;
}

export interface FairScheduleOptions {
  /** Most pieces of work that run at once. */
  places: number;
  /** Most total cost of running work that is not light. One piece counts for at most half of it, so that two always fit. */
  heavyBudget: number;
  /** Weight by share, default 1. It matters only while several shares have waiting work. */
  weights?: Readonly<Record<string, number>>;
  /** A share that others leave room for, also while it has no waiting work. */
  preference?: Preference;
}

/** For some time after work of a share has come, some other shares together run a few pieces, of which one is heavy. */
export interface Preference {
  readonly share: string;
  /** The shares that leave room. */
  readonly others: readonly string[];
  /** Most running pieces of these, at least 1. */
  readonly othersMost: number;
  readonly forMs: number;
}

/** Work up to this cost is light: it needs a place but no budget, so it never waits behind heavy work. */
export const LIGHT = 1;

/** Most remembered flows of a share. Above that, flows without waiting work are forgotten, with their debt. */
const MAX_FLOWS = 10_000;

interface Account {
  /** Virtual time up to which its work has been paid for. */
  paidUntil: number;
}

interface Flow extends Account {
  readonly waiting: Work[];
}

/** Work that has started. */
interface Started {
  readonly share: Share;
  readonly flow: Flow;
  readonly cost: number;
}

interface Share extends Account {
  readonly weight: number;
  readonly isPreferred: boolean;
  /** Whether it leaves room for the preferred share. */
  readonly isOther: boolean;
  readonly flows: Map<string, Flow>;
  /** Virtual time of its flows. */
  now: number;
  waiting: number;
}

/**
 * Start-time fair queueing (Goyal, Vin, Cheng 1996) in two levels: shares by weight, and the flows of a share equally. Other shares may use
 * capacity that a share does not use. Not preemptive: work that has started is finished.
 *
 * It does not limit the waiting work. The callers do: they enter at most the prefetch of the consumers.
 */
export class FairSchedule {
  private readonly shares = new Map<string, Share>();
  private readonly heavyMost: number;
  private now = 0;
  private waitingWork = 0;
  private runningWork = 0;
  private heavy = 0;
  /** Of the shares that leave room for the preferred one: running pieces, and running heavy ones. */
  private others = 0;
  private heavyOthers = 0;
  /** When work of the preferred share came, in milliseconds of `performance.now()`. */
  private preferredAt = -Infinity;
  private opened = false;

  constructor(private readonly options: FairScheduleOptions) {
    this.heavyMost = options.heavyBudget / 2;
  }

  /** Starts the work when it is its turn: at once when there is room and no work waits. */
  enter(work: Work): void {
    const share = this.shareOf(work.share);
    const flow = flowOf(share, work.flow);
    if (share.isPreferred) this.preferredAt = performance.now();
    if (this.opened) return this.begin(share, flow, work, work.costNow());
    if (this.waitingWork === 0) {
      const cost = work.costNow();
      if (this.mayStart(share, cost) && this.hasRoom(cost)) return this.begin(share, flow, work, cost);
    }
    flow.waiting.push(work);
    share.waiting++;
    this.waitingWork++;
    this.startWaiting();
  }

  /** Call it once for each piece of work, when it has ended. @param cost the actual cost */
  leave(work: Work, cost?: number): void {
    const { started } = work;
    if (!started) return;
    work.started = undefined;
    this.count(started, -1);
    const { share, flow } = started;
    const owed = (cost ?? started.cost) - started.cost;
    share.paidUntil += owed / share.weight;
    flow.paidUntil += owed;
    if (share.flows.size > MAX_FLOWS) forgetIdle(share);
    if (this.waitingWork > 0) this.startWaiting();
  }

  /** Starts all waiting work at once, and new work too until {@link close}. For work that is only answered, not executed. */
  open(): void {
    this.opened = true;
    for (const share of this.shares.values()) {
      for (const flow of share.flows.values()) {
        share.waiting -= flow.waiting.length;
        this.waitingWork -= flow.waiting.length;
        for (const work of flow.waiting.splice(0)) this.begin(share, flow, work, work.costNow());
      }
    }
  }

  close(): void {
    this.opened = false;
  }

  /** Number of pieces of work that have started and not ended. */
  get running(): number {
    return this.runningWork;
  }

  /** Number of pieces of work that wait for their turn. */
  get waiting(): number {
    return this.waitingWork;
  }

  /** The flows with the most waiting work, for the log. It scans all flows: do not call it often. */
  busiest(most: number): { share: string; flow: string; waiting: number }[] {
    return [...this.shares]
      .flatMap(([share, { flows }]) => [...flows].map(([flow, { waiting }]) => ({ share, flow, waiting: waiting.length })))
      .filter(({ waiting }) => waiting > 0)
      .sort((a, b) => b.waiting - a.waiting)
      .slice(0, most);
  }

  private startWaiting(): void {
    for (let next = this.next(); next; next = this.next()) {
      const { share, flow, cost } = next;
      share.waiting--;
      this.waitingWork--;
      this.begin(share, flow, flow.waiting.shift()!, cost);
    }
  }

  /** The next work that fits, in the order of turns. Heavy work that does not fit keeps its turn: no other heavy work passes it. */
  private next(): { share: Share; flow: Flow; cost: number } | undefined {
    if (this.waitingWork === 0 || this.running >= this.options.places) return undefined;
    let heavyMayStart = true;
    for (const share of inOrder([...this.shares.values()].filter(({ waiting }) => waiting > 0))) {
      for (const flow of inOrder([...share.flows.values()].filter(({ waiting }) => waiting.length > 0))) {
        const cost = flow.waiting[0].costNow();
        // Work that leaves room for the preferred share has no turn to keep.
        if (!this.mayStart(share, cost)) continue;
        if (cost <= LIGHT || (heavyMayStart && this.hasRoom(cost))) return { share, flow, cost };
        heavyMayStart = false;
      }
    }
    return undefined;
  }

  private begin(share: Share, flow: Flow, work: Work, cost: number): void {
    this.now = Math.max(this.now, share.paidUntil);
    share.now = Math.max(share.now, flow.paidUntil);
    // An idle share or flow does not save up credit.
    share.paidUntil = this.now + cost / share.weight;
    flow.paidUntil = share.now + cost;
    work.started = { share, flow, cost };
    this.count(work.started, 1);
    work.start();
  }

  private count({ share, cost }: Started, one: 1 | -1): void {
    this.runningWork += one;
    this.heavy += one * this.heavinessOf(cost);
    if (!share.isOther) return;
    this.others += one;
    if (cost > LIGHT) this.heavyOthers += one;
  }

  /** Whether the share leaves enough room for the preferred one. At least one piece of the others always runs, and its end lets the next one start. */
  private mayStart({ isOther }: Share, cost: number): boolean {
    const { preference } = this.options;
    if (!isOther || !preference || performance.now() - this.preferredAt > preference.forMs) return true;
    return this.others < preference.othersMost && (cost <= LIGHT || this.heavyOthers === 0);
  }

  private hasRoom(cost: number): boolean {
    return this.running < this.options.places && this.heavy + this.heavinessOf(cost) <= this.options.heavyBudget;
  }

  private heavinessOf(cost: number): number {
    return cost <= LIGHT ? 0 : Math.min(cost, this.heavyMost);
  }

  private shareOf(name: string): Share {
    let share = this.shares.get(name);
    if (!share) {
      const { weights, preference } = this.options;
      share = {
        paidUntil: 0,
        weight: weights?.[name] ?? 1,
        isPreferred: name === preference?.share,
        isOther: preference?.others.includes(name) ?? false,
        flows: new Map(),
        now: 0,
        waiting: 0,
      };
      this.shares.set(name, share);
    }
    return share;
  }
}

function flowOf(share: Share, name: string): Flow {
  let flow = share.flows.get(name);
  if (!flow) share.flows.set(name, (flow = { paidUntil: 0, waiting: [] }));
  return flow;
}

function forgetIdle(share: Share): void {
  for (const [name, { waiting }] of share.flows) if (waiting.length === 0) share.flows.delete(name);
}

const inOrder = <One extends Account>(accounts: One[]): One[] => accounts.sort((a, b) => a.paidUntil - b.paidUntil);
