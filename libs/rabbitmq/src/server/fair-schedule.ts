/** A piece of work that waits for its turn. */
export interface Work {
  /** Class of flows with a weight, such as a lane. */
  readonly share: string;
  /** Neighbours within a share that take turns, such as API keys. */
  readonly flow: string;
  /** What it is expected to cost; 1 is a light one. */
  readonly cost: number;
  /** Starts it. Must not throw. */
  start(): void;
}

export interface FairScheduleOptions {
  /** Most pieces of work under way. */
  places: number;
  /** Most cost of work under way that is not light. Half of it at most is counted for one, so that two fit. */
  heavyBudget: number;
  /** By share, 1 for one that is not named. Counts while several shares have work that waits. */
  weights?: Readonly<Record<string, number>>;
}

/** Up to this cost work is light: it needs a place and nothing of the budget, so that it never waits behind heavy work. */
export const LIGHT = 1;

/** Flows of a share that are remembered; then those without waiting work are forgotten, with what they owe. */
const MAX_FLOWS = 10_000;

interface Account {
  /** Virtual time up to which its work has been paid for. */
  paidUntil: number;
}

interface Flow extends Account {
  readonly waiting: Work[];
}

interface Share extends Account {
  readonly weight: number;
  readonly flows: Map<string, Flow>;
  /** Virtual time of its flows. */
  now: number;
  waiting: number;
}

/**
 * Start-time fair queueing (Goyal, Vin, Cheng 1996) in two levels: shares by weight, and the flows of a share equally. What a share does not
 * use is free for the others. Not preemptive: work that has started is finished.
 *
 * Bounded by the caller: it holds what was entered, at most the prefetch of the consumers.
 */
export class FairSchedule {
  private readonly shares = new Map<string, Share>();
  private readonly heavyMost: number;
  private now = 0;
  private waitingWork = 0;
  private running = 0;
  private heavy = 0;
  private opened = false;

  constructor(private readonly options: FairScheduleOptions) {
    this.heavyMost = options.heavyBudget / 2;
  }

  /** Starts the work when it is its turn: at once when there is room, and nothing waits that could start. */
  enter(work: Work): void {
    const share = this.shareOf(work.share);
    const flow = flowOf(share, work.flow);
    if (this.opened || (this.waitingWork === 0 && this.hasRoom(work))) return this.begin(share, flow, work);
    flow.waiting.push(work);
    share.waiting++;
    this.waitingWork++;
    this.startWaiting();
  }

  /** To be called once for each piece of work that has started, when it has ended. @param cost what it did cost */
  leave(work: Work, cost = work.cost): void {
    this.running--;
    this.heavy -= this.heavinessOf(work);
    const share = this.shareOf(work.share);
    const flow = flowOf(share, work.flow);
    share.paidUntil += (cost - work.cost) / share.weight;
    flow.paidUntil += cost - work.cost;
    if (share.flows.size > MAX_FLOWS) forgetIdle(share);
    if (this.waitingWork > 0) this.startWaiting();
  }

  /** Everything that waits, and what is entered until {@link close}, starts at once: it has to be answered and not done. */
  open(): void {
    this.opened = true;
    for (const share of this.shares.values()) {
      for (const flow of share.flows.values()) {
        share.waiting -= flow.waiting.length;
        this.waitingWork -= flow.waiting.length;
        for (const work of flow.waiting.splice(0)) this.begin(share, flow, work);
      }
    }
  }

  close(): void {
    this.opened = false;
  }

  /** Pieces of work that wait for their turn. */
  get waiting(): number {
    return this.waitingWork;
  }

  /** The flows with most waiting work. Goes through all of them: for the log. */
  busiest(most: number): { share: string; flow: string; waiting: number }[] {
    return [...this.shares]
      .flatMap(([share, { flows }]) => [...flows].map(([flow, { waiting }]) => ({ share, flow, waiting: waiting.length })))
      .filter(({ waiting }) => waiting > 0)
      .sort((a, b) => b.waiting - a.waiting)
      .slice(0, most);
  }

  private startWaiting(): void {
    for (let next = this.next(); next; next = this.next()) {
      const { share, flow } = next;
      share.waiting--;
      this.waitingWork--;
      this.begin(share, flow, flow.waiting.shift()!);
    }
  }

  /** The first in the order of turns whose work fits. Heavy work that does not fit keeps its turn: no other heavy work passes it. */
  private next(): { share: Share; flow: Flow } | undefined {
    if (this.waitingWork === 0 || this.running >= this.options.places) return undefined;
    let heavyMayStart = true;
    for (const share of inOrder([...this.shares.values()].filter(({ waiting }) => waiting > 0))) {
      for (const flow of inOrder([...share.flows.values()].filter(({ waiting }) => waiting.length > 0))) {
        const [work] = flow.waiting;
        if (work.cost <= LIGHT || (heavyMayStart && this.hasRoom(work))) return { share, flow };
        heavyMayStart = false;
      }
    }
    return undefined;
  }

  private begin(share: Share, flow: Flow, work: Work): void {
    this.now = Math.max(this.now, share.paidUntil);
    share.now = Math.max(share.now, flow.paidUntil);
    // A share or flow that was idle has saved nothing.
    share.paidUntil = this.now + work.cost / share.weight;
    flow.paidUntil = share.now + work.cost;
    this.running++;
    this.heavy += this.heavinessOf(work);
    work.start();
  }

  private hasRoom(work: Work): boolean {
    return this.running < this.options.places && this.heavy + this.heavinessOf(work) <= this.options.heavyBudget;
  }

  private heavinessOf({ cost }: Work): number {
    return cost <= LIGHT ? 0 : Math.min(cost, this.heavyMost);
  }

  private shareOf(name: string): Share {
    let share = this.shares.get(name);
    if (!share) {
      share = { paidUntil: 0, weight: this.options.weights?.[name] ?? 1, flows: new Map(), now: 0, waiting: 0 };
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
