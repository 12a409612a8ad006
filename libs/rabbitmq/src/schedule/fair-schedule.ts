import { busiestOf, flowOf, forgetIdle, inOrder, shareOf, sortAgain, sortFirst, takeFirst, takeOut, wait } from './flows';
import { HeavyBudget } from './heavy-budget';
import { LightWork } from '@app/runtime/light-work';
import { LIGHT, type FairScheduleOptions, type Flow, type Room, type Share, type Started, type Work } from './scheduled-work';

/** Time after which waiting work looks for room again when nothing has ended. */
const LOOK_AFTER_MS = 1000;
/** A piece that has hung must not stop the others of its kind for as long again. */
const MOST_REST_MS = 1000;

/** Light work of a flow comes all the time when its latest piece ended no longer ago. Then it is protected from what gives way. */
const OWN_LIGHT_MS = 100;

/** Most remembered flows of a share. Above that, flows without waiting work are forgotten, with their debt. */
const MAX_FLOWS = 10_000;

/**
 * Start-time fair queueing (Goyal, Vin, Cheng 1996) in two levels: shares by weight, and the flows of a share equally. Other shares may use
 * capacity that a share does not use. Not preemptive: work that has started is finished.
 *
 * It does not limit the waiting work. The callers do: they enter at most the prefetch of the consumers.
 */
export class FairSchedule {
  private readonly shares = new Map<string, Share>();
  private now = 0;
  /** Pieces of work that wait for their turn, that have started and not ended, and that have ended and keep their room. */
  waiting = 0;
  running = 0;
  resting = 0;
  /** Of the shares that leave room for the preferred one: running pieces, and running heavy ones. */
  private others = 0;
  private heavyOthers = 0;
  /** When work of the preferred share came, in milliseconds of `performance.now()`. */
  private preferredAt = -Infinity;
  private opened = false;
  private looking?: NodeJS.Timeout;
  private readonly heavy: HeavyBudget;
  private readonly lightWork = new LightWork();
  private readonly costOf = (work: Work) => work.costNow(this.lightWork.isBeside(work.owner, performance.now()));

  constructor(private readonly options: FairScheduleOptions) {
    this.heavy = new HeavyBudget(options.heavyBudget);
  }

  /** Starts the work when it is its turn: at once when there is room and no work waits. */
  enter(work: Work): void {
    const share = shareOf(this.shares, work.share, this.options);
    const flow = flowOf(share, work.flow);
    if (share.isPreferred) this.preferredAt = performance.now();
    const cost = this.costOf(work);
    if (this.opened && work.isOnlyAnswered) return this.begin(share, flow, work, cost);
    // Waiting light work has no place or may not start, and then neither may this: it passes heavy work only.
    const isNext = this.waiting === 0 || cost <= LIGHT;
    const mayStart = this.mayStart(share, cost) && !this.isCapped(work, flow);
    const room = isNext && mayStart ? this.roomFor(work, flow, cost) : undefined;
    if (room) return this.begin(share, flow, work, cost, room);
    wait(share, flow, work, cost);
    this.waiting++;
    this.startWaiting();
  }

  /**
   * Call it once for each piece of work, when it has ended.
   *
   * @param cost the actual cost, and `again` the part of it that is expected of the next work, too
   * @param isNews whether waiting work of its flow has become heavy or light by this
   */
  leave(work: Work, cost?: number, isNews = false, again = cost): void {
    const { started } = work;
    if (!started) return;
    work.started = undefined;
    const { share, flow } = started;
    const known = cost ?? started.cost;
    const owed = known - started.cost;
    share.paidUntil += owed / share.weight;
    flow.paidUntil += owed;
    if (share.flows.size > MAX_FLOWS) forgetIdle(share);
    this.running--;
    this.keepRoom(started, -1);
    const restMs = this.restAfter(work, started, known);
    if (known <= LIGHT) flow.lightAt = performance.now();
    const restingCost = Math.max(again ?? started.cost, started.cost);
    const resting = { ...started, cost: restingCost, room: this.heavy.roomOf(restingCost, started.room) };
    // No budget holds the next work back when that is light, and heavy work of others needs the budget. So its place stays taken.
    const keepsPlace = restMs > 0 && resting.cost <= LIGHT;
    if (!keepsPlace) flow.running--;
    if (restMs > 0) this.rest(resting, restMs, keepsPlace);
    if (isNews) sortAgain(flow, this.costOf);
    if (this.waiting > 0) this.startWaiting();
  }

  /** Starts waiting work that is only answered at once, and new such work too until {@link close}. Other work keeps waiting for its turn. */
  open(): void {
    this.opened = true;
    for (const { share, flow, work } of this.takeOut((one) => one.isOnlyAnswered))
      this.begin(share, flow, work, this.costOf(work));
  }

  close(): void {
    this.opened = false;
  }

  /** Drops the waiting work that is over, and starts heavy work that fits and has waited behind it. */
  dropOver(): void {
    this.takeOut((work) => work.dropIfOver?.() ?? false);
    if (this.waiting > 0) this.startWaiting();
  }

  /** The flows with the most waiting work, for the log. It scans all flows: do not call it often. */
  busiest(most: number): { share: string; flow: string; waiting: number }[] {
    return busiestOf(this.shares, most);
  }

  /** Milliseconds for which the room of work that has just ended stays unused. @param known its actual cost */
  private restAfter(work: Work, { share, flow, cost, at }: Started, known: number): number {
    const { rests, preference } = this.options;
    const now = performance.now();
    const besidePreferred = share.isOther && this.isPreferredBusy(now);
    if (!rests || !(besidePreferred || this.isBesideLight(work, flow, Math.max(cost, known), now))) return 0;
    return Math.min(MOST_REST_MS, Math.max((besidePreferred && preference?.leastRestMs) || 0, now - at));
  }

  private rest(resting: Started, ms: number, keepsPlace: boolean): void {
    this.keepRoom(resting, 1);
    this.resting++;
    setTimeout(() => {
      if (keepsPlace) resting.flow.running--;
      this.keepRoom(resting, -1);
      this.resting--;
      if (this.waiting > 0) this.startWaiting();
      this.options.afterRest?.();
    }, ms).unref();
  }

  private takeOut(isWanted: (work: Work) => boolean): ReturnType<typeof takeOut> {
    const taken = takeOut(this.shares.values(), isWanted);
    this.waiting -= taken.length;
    return taken;
  }

  private startWaiting(): void {
    for (let next = this.next(); next; next = this.next()) {
      const { share, flow, queue, cost, room } = next;
      this.waiting--;
      this.begin(share, flow, takeFirst(share, flow, queue), cost, room);
    }
    // Limits that count beside light work or calls of others end with time, also while all running work hangs.
    if (this.waiting === 0 || this.running >= this.options.places) return;
    this.looking ??= setTimeout(() => {
      this.looking = undefined;
      this.startWaiting();
      this.options.afterRest?.();
    }, LOOK_AFTER_MS).unref();
  }

  /** The first of the queue whose turn it is and that fits. Work that does not fit keeps its turn: no other heavy work takes the shared room. */
  private next(): { share: Share; flow: Flow; queue: Work[]; cost: number; room: Room } | undefined {
    if (this.waiting === 0 || this.running >= this.options.places) return undefined;
    let isTurnKept = false;
    for (const share of inOrder([...this.shares.values()].filter(({ waiting }) => waiting.size > 0))) {
      for (const flow of inOrder(share.waiting)) {
        sortFirst(flow, this.costOf);
        for (const queue of [flow.heavy, flow.light]) {
          if (queue.length === 0) continue;
          const [work] = queue;
          const cost = this.costOf(work);
          // Work that leaves room for the preferred share, or for other flows, has no turn to keep.
          if (!this.mayStart(share, cost) || this.isCapped(work, flow)) continue;
          const room = this.roomFor(work, flow, cost, isTurnKept);
          if (room) return { share, flow, queue, cost, room };
          isTurnKept = true;
        }
      }
    }
    return undefined;
  }

  private begin(share: Share, flow: Flow, work: Work, cost: number, room = this.heavy.roomOf(cost)): void {
    this.now = Math.max(this.now, share.paidUntil);
    share.now = Math.max(share.now, flow.paidUntil);
    // An idle share or flow does not save up credit.
    share.paidUntil = this.now + cost / share.weight;
    flow.paidUntil = share.now + cost;
    work.started = { share, flow, cost, room, at: performance.now() };
    if (cost <= LIGHT) this.lightWork.started(work.owner, work.started.at);
    this.running++;
    flow.running++;
    this.keepRoom(work.started, 1);
    work.start();
  }

  private keepRoom({ share, flow, cost, room }: Started, one: 1 | -1): void {
    if (one > 0) this.heavy.take(room, cost);
    else this.heavy.give(room, cost);
    if (room === 'shared') flow.sharing += one;
    if (!share.isOther) return;
    this.others += one;
    if (cost > LIGHT) this.heavyOthers += one;
  }

  /**
   * Whether the share leaves enough room for the preferred one. The heavy piece of the others needs none of their places: light ones would take
   * each free place, and heavy work of the preferred share the room in the budget, so that both would never be free at once.
   */
  private mayStart({ isOther }: Share, cost: number): boolean {
    const { preference } = this.options;
    if (!isOther || !preference || !this.isPreferredBusy(performance.now())) return true;
    return cost <= LIGHT ? this.others < preference.othersMost : this.heavyOthers === 0;
  }

  private isPreferredBusy(now: number): boolean {
    const { preference } = this.options;
    return preference !== undefined && now - this.preferredAt <= preference.forMs;
  }

  /** Whether its flow has all that one may have beside light work of others. Light work that waits for a lock would take all places. */
  private isCapped({ owner }: Work, { running }: Flow): boolean {
    const { places, rests } = this.options;
    return rests === true && running >= places / 2 && this.lightWork.isBeside(owner, performance.now());
  }

  private roomFor(work: Work, flow: Flow, cost: number, isTurnKept = false): Room | undefined {
    const { places, rests } = this.options;
    if (this.running >= places) return undefined;
    const isHalved = rests && this.isBesideLight(work, flow, cost, performance.now());
    const room = this.heavy.roomFor(cost, isTurnKept ? 'nothing' : isHalved ? 'half' : 'all');
    return room === 'small' && flow.sharing > 0 ? undefined : room;
  }

  /** Whether the work is heavy, and light work that is protected from it came just before. */
  private isBesideLight(work: Work, flow: Flow, cost: number, now: number): boolean {
    if (cost <= LIGHT) return false;
    const isBesideOwn = cost >= this.heavy.half && now - flow.lightAt <= OWN_LIGHT_MS && work.givesWay;
    return isBesideOwn || this.lightWork.isBeside(work.owner, now);
  }
}
