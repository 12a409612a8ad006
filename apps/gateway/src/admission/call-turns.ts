import { FairQueue } from '@app/runtime/fair-queue';
import { LightWork } from '@app/runtime/light-work';
import { CALLS_PREFETCH } from '@app/rabbitmq/topology/consumed-queues';
import { callsWaiting } from '../server/metrics';
import { isQuery, KINDS, type Kind } from './kinds';

/**
 * Most queries of a kind at work: what one process of a service takes from its queue. It lets keys take turns among the queries that it has, but a
 * query behind these waits in the queue, whoever asks.
 */
export const MOST_QUERIES = 256;
/** A heavy command counts with the bytes of its body, but for no more than this. So does one that changes rows. */
export const HEAVIEST_BYTES = 8 * 1024;
/**
 * Most heavy commands of a kind at work, in bytes: as many of the heaviest as one process of a service takes messages from its queue. A consumer starts
 * few of them at a time. More would fill the queue, and light commands of others wait there behind them. Smaller ones are done sooner, and share messages.
 */
export const MOST_HEAVY_BYTES = CALLS_PREFETCH * HEAVIEST_BYTES;
/** Most light commands of a key at work in a kind beside calls of others, which may have to wait behind all of them. They are 1000 a second at 32 ms each. */
export const MOST_LIGHT_BESIDE = 32;
/** Another key counts as beside for this time after its latest call. Its first call after that finds a full queue. */
export const BESIDE_MS = 10_000;
/** A query is heavy when so many bytes are expected of its answer. It counts with these, but for no more than the largest page has. */
export const HEAVY_ANSWER_BYTES = 256 * 1024;
export const LARGEST_ANSWER_BYTES = 4 * 1024 * 1024;
/** Most heavy queries of a kind at work, in bytes of their answers. A consumer reads few pages at a time, and the others would only wait for it. */
export const MOST_ANSWER_BYTES = 16 * LARGEST_ANSWER_BYTES;
/** Most queries at work whose answers may have any size, of one key and of all. They may all be large, and then most find no room for their answers. */
export const MOST_UNKNOWN = { ofKey: 8, ofAll: 64 };
/** One key has this part of them at most, so that another one finds a turn at once. */
const PART_OF_KEY = 3 / 4;
/** So many calls of new keys may be at work in a kind beside calls of settled keys, or as many as these have. */
export const MOST_BESIDE_SETTLED = 64;
/** At most this part of them, so that new keys do not keep settled ones out. */
const PART_BESIDE_SETTLED = 1 / 4;
/** A settled key is protected while it has calls at work, and for this time after the start of one. */
const PROTECTED_MS = 1000;

/** Whose call it is, and whose turns it takes. */
export interface Turn {
  kind: Kind;
  apiKey: string;
  isSettled: boolean;
  /** Bytes of a heavy command, as consumers count it, or of the expected answer to a query. 0: it is light. Undefined: nobody knows. */
  heavyBytes?: number;
}

interface Call {
  apiKey: string;
  weight: number;
  work: () => void;
}

interface TurnsOptions {
  most: number;
  mostOfKey?: number;
  /** The largest weight of a call. */
  heaviest?: number;
  /** The latest calls of all keys. Present: a key has at most {@link MOST_LIGHT_BESIDE} beside those of others. */
  calls?: LightWork;
}

/** Calls of one kind, counted by their weight. */
class Turns {
  private readonly settled = new FairQueue<Call>();
  private readonly fresh = new FairQueue<Call>();
  private readonly atWork = new Map<string, number>();
  private settledAtWork = 0;
  private freshAtWork = 0;
  private settledAt = -Infinity;
  private resultAt = -Infinity;
  private isBeginning = false;
  private wake?: NodeJS.Timeout;
  private readonly mostBesideSettled: number;

  private readonly most: number;
  private readonly mostOfKey: number;
  private readonly calls?: LightWork;

  constructor({ most, mostOfKey = PART_OF_KEY * most, heaviest = 1, calls }: TurnsOptions) {
    this.most = most;
    this.mostOfKey = mostOfKey;
    this.calls = calls;
    this.mostBesideSettled = Math.min(MOST_BESIDE_SETTLED * heaviest, PART_BESIDE_SETTLED * most);
  }

  begin(call: Call, isSettled: boolean): () => boolean {
    const { apiKey, work } = call;
    if (this.settled.isEmpty && this.fresh.isEmpty && this.hasRoomFor(isSettled) && this.mayBegin(apiKey)) {
      this.count(call, isSettled);
      work();
      return () => false;
    }
    const queue = isSettled ? this.settled : this.fresh;
    callsWaiting.inc();
    queue.add(apiKey, call);
    this.beginWaiting();
    return () => {
      const isWaiting = queue.remove(apiKey, call);
      if (isWaiting) callsWaiting.dec();
      return isWaiting;
    };
  }

  end({ apiKey, weight }: Omit<Call, 'work'>, isSettled: boolean, isResult: boolean): void {
    if (isResult) this.resultAt = performance.now();
    if (isSettled) this.settledAtWork -= weight;
    else this.freshAtWork -= weight;
    const others = this.of(apiKey) - weight;
    if (others > 0) this.atWork.set(apiKey, others);
    else this.atWork.delete(apiKey);
    this.beginWaiting();
  }

  isOverShare(apiKey: string, since: number): boolean {
    return this.of(apiKey) > 0 && this.resultAt >= since;
  }

  private beginWaiting(): void {
    // A work may end at once, and that calls this again.
    if (this.isBeginning) return;
    this.isBeginning = true;
    try {
      for (let call = this.next(); call; call = this.next()) {
        callsWaiting.dec();
        call.work();
      }
    } finally {
      this.isBeginning = false;
    }
    this.wakeAfterProtection();
  }

  /** Nothing else begins the waiting calls of new keys when no call begins or ends. */
  private wakeAfterProtection(): void {
    const leftMs = this.settledAt + PROTECTED_MS - performance.now();
    if (this.wake || this.fresh.isEmpty || this.settledAtWork > 0 || leftMs < 0) return;
    this.wake = setTimeout(() => {
      this.wake = undefined;
      this.beginWaiting();
    }, Math.ceil(leftMs)).unref();
  }

  /** New keys come first up to a small number, so that settled ones with many calls do not keep them out. */
  private next(): Call | undefined {
    const isFreshFirst = this.freshAtWork < this.mostBesideSettled;
    return this.first(!isFreshFirst) ?? this.first(isFreshFirst);
  }

  private first(isSettled: boolean): Call | undefined {
    // Once for all keys: a thousand may wait, and each end of a call comes here.
    if (!this.hasRoomFor(isSettled)) return undefined;
    const call = (isSettled ? this.settled : this.fresh).takeFirst((apiKey) => this.mayBegin(apiKey));
    if (call) this.count(call, isSettled);
    return call;
  }

  private count({ apiKey, weight }: Call, isSettled: boolean): void {
    this.atWork.set(apiKey, this.of(apiKey) + weight);
    if (!isSettled) this.freshAtWork += weight;
    else {
      this.settledAtWork += weight;
      this.settledAt = performance.now();
    }
  }

  private of(apiKey: string): number {
    return this.atWork.get(apiKey) ?? 0;
  }

  private mayBegin(apiKey: string): boolean {
    const ofKey = this.of(apiKey);
    if (ofKey >= MOST_LIGHT_BESIDE && this.calls?.isBeside(apiKey, performance.now())) return false;
    return ofKey < this.mostOfKey;
  }

  private hasRoomFor(isSettled: boolean): boolean {
    return this.settledAtWork + this.freshAtWork < this.most && (isSettled || this.freshAtWork < this.mostFresh());
  }

  private mostFresh(): number {
    const isBeside = this.settledAtWork > 0 || performance.now() - this.settledAt <= PROTECTED_MS;
    return isBeside ? Math.max(this.mostBesideSettled, this.settledAtWork) : Infinity;
  }
}

/**
 * Lets API keys take turns for the beginning of their calls, because in the queues behind this process nobody knows whose call should be next. Few
 * calls of new keys are at work beside settled ones: the share of a key protects from one other key, but not from a thousand.
 *
 * It does not limit the waiting calls: they hold places.
 */
export class CallTurns {
  /** The latest calls, of any weight: they have one queue. */
  private readonly calls = ofKinds(() => new LightWork(BESIDE_MS));
  private readonly turns = ofKinds(
    (kind) => new Turns(isQuery(kind) ? { most: MOST_QUERIES } : { most: Infinity, calls: this.calls[kind] }),
  );
  /** Apart from light calls, which must not wait for them. */
  private readonly heavy = ofKinds(
    (kind) => new Turns({ most: isQuery(kind) ? MOST_ANSWER_BYTES : MOST_HEAVY_BYTES, heaviest: heaviestOf(kind) }),
  );
  private readonly unknown = ofKinds(() => new Turns({ most: MOST_UNKNOWN.ofAll, mostOfKey: MOST_UNKNOWN.ofKey }));

  /**
   * Begins the work of a call now or in its turn. Call {@link end} once, when it has ended.
   *
   * @returns gives up the turn. It returns false when the work had begun, or was given up; if true, the work never begins
   */
  begin(turn: Turn, work: () => void): () => boolean {
    this.calls[turn.kind].started(turn.apiKey, performance.now());
    return this.of(turn).begin({ apiKey: turn.apiKey, weight: weightOf(turn), work }, turn.isSettled);
  }

  /** @param turn as it was at the beginning @param isResult whether its call was answered with a result */
  end(turn: Turn, isResult: boolean): void {
    this.of(turn).end({ apiKey: turn.apiKey, weight: weightOf(turn) }, turn.isSettled, isResult);
  }

  /**
   * Whether a call that waits since then has no turn because of other calls of its key: these are at work, and the service behind this process
   * gives results.
   *
   * @param since milliseconds of `performance.now()`
   */
  isOverShare(turn: Turn, since: number): boolean {
    return this.of(turn).isOverShare(turn.apiKey, since);
  }

  private of(turn: Turn): Turns {
    if (turn.heavyBytes === undefined) return this.unknown[turn.kind];
    return (isHeavy(turn.kind, turn.heavyBytes) ? this.heavy : this.turns)[turn.kind];
  }
}

const isHeavy = (kind: Kind, bytes: number): boolean => bytes >= (isQuery(kind) ? HEAVY_ANSWER_BYTES : 1);

function weightOf({ kind, heavyBytes }: Turn): number {
  if (heavyBytes === undefined || !isHeavy(kind, heavyBytes)) return 1;
  return Math.min(heavyBytes, heaviestOf(kind));
}

function heaviestOf(kind: Kind): number {
  return isQuery(kind) ? LARGEST_ANSWER_BYTES : HEAVIEST_BYTES;
}

const ofKinds = <One>(oneOf: (kind: Kind) => One) =>
  Object.fromEntries(KINDS.map((kind) => [kind, oneOf(kind)])) as Record<Kind, One>;
