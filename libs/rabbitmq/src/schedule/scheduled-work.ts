/** A piece of work that waits for its turn. */
export interface Work {
  /** Group of flows with a weight, such as a lane. */
  readonly share: string;
  /** Flows of a share take turns. A flow is, for example, an API key. */
  readonly flow: string;
  /** Light work is protected from heavy work of other owners. Work of nobody is not protected. */
  readonly owner: string | undefined;
  /**
   * Expected cost; 1 is light work. It is asked whenever the work could start, because earlier work of the flow may have changed it.
   *
   * @param isBesideLight whether light work that is protected from it came just before
   */
  costNow(isBesideLight: boolean): number;
  /** Whether light work of its own flow is protected from it, too, if it costs half of the budget or more. */
  readonly givesWay: boolean;
  /** Whether it is only answered, and not executed, when it starts while the schedule is open. */
  readonly isOnlyAnswered: boolean;
  /** Starts it. Must not throw. */
  start(): void;
  /** Ends it before its start, if nobody needs it any more. Must not throw. @returns whether it has ended */
  dropIfOver?(): boolean;
  /** Set by the schedule. */
  started?: Started;
}

export interface Account {
  /** Virtual time up to which its work has been paid for. */
  paidUntil: number;
}

export interface Flow extends Account {
  /** Waiting work by its cost when it came, or when costs of the flow changed. */
  readonly heavy: Work[];
  readonly light: Work[];
  /** Number of pieces that have started and not ended, and of those that rest after they had started as light ones. */
  running: number;
  /** Number of pieces that take the shared room for heavy work. */
  sharing: number;
  /** When its latest light work ended, in milliseconds of `performance.now()`. */
  lightAt: number;
}

/** The room in the budget that a piece of work takes. Light work takes none. */
export type Room = 'shared' | 'small' | 'none';

/** Work that has started. */
export interface Started {
  readonly share: Share;
  readonly flow: Flow;
  readonly cost: number;
  readonly room: Room;
  /** In milliseconds of `performance.now()`. */
  readonly at: number;
}

export interface Share extends Account {
  readonly weight: number;
  readonly isPreferred: boolean;
  /** Whether it leaves room for the preferred share. */
  readonly isOther: boolean;
  readonly flows: Map<string, Flow>;
  /** The flows that have waiting work: few of those that are remembered. */
  readonly waiting: Set<Flow>;
  /** Virtual time of its flows. */
  now: number;
}

export interface FairScheduleOptions {
  /** Most pieces of work that run at once. */
  places: number;
  /**
   * Most total cost of running work that is not light. One piece counts for at most half of it, so that two always fit. Small pieces have some room
   * beside it.
   */
  heavyBudget: number;
  /** Weight by share, default 1. It matters only while several shares have waiting work. */
  weights?: Readonly<Record<string, number>>;
  /** A share that others leave room for, also while it has no waiting work. */
  preference?: Preference;
  /**
   * Whether heavy work beside light work that is protected from it has half of the budget, and a flow half of the places, and leaves its room unused
   * for as long again as it has run: in the budget, and among the places of its flow if it started as light work. So does work that leaves room for
   * the preferred share. The rest of the machine is for the others. Default false.
   */
  rests?: boolean;
  /** Called after a rest: waiting work may have started, although none came or ended. */
  afterRest?: () => void;
}

/** For some time after work of a share has come, some other shares together run a few pieces, and one that is heavy. */
export interface Preference {
  readonly share: string;
  /** The shares that leave room. */
  readonly others: readonly string[];
  /** Most running pieces of these, at least 1. One heavy piece may run beside them. */
  readonly othersMost: number;
  readonly forMs: number;
  /** How long these keep their room after their end at least, if they rest: for work whose cost is elsewhere. Default 0. */
  readonly leastRestMs?: number;
}

/** Work up to this cost is light: it needs a place but no budget, so it never waits behind heavy work, not even of its own flow. */
export const LIGHT = 1;
