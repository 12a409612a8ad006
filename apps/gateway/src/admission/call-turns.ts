import { FairQueue } from '@app/amqp/calls/fair-queue';
import { callsWaiting } from '../server/metrics';
import { KINDS, type Kind } from './kinds';

/**
 * Most queries of a kind at work: what one process of a service takes from its queue. It lets keys take turns among the queries that it has, but a
 * query behind these waits in the queue, whoever asks.
 */
export const MOST_QUERIES = 256;
/** So many calls of new keys may be at work in a kind beside calls of settled keys, or as many as these have. */
export const MOST_BESIDE_SETTLED = 64;
/** A settled key is protected while it has calls at work, and for this time after the start of one. */
const PROTECTED_MS = 1000;

type Work = () => void;

/** Calls of one kind. */
class Turns {
  private readonly settled = new FairQueue<Work>();
  private readonly fresh = new FairQueue<Work>();
  private settledAtWork = 0;
  private freshAtWork = 0;
  private settledAt = -Infinity;
  private isBeginning = false;

  constructor(private readonly most: number) {}

  begin(apiKey: string, isSettled: boolean, work: Work): void {
    if (this.settled.isEmpty && this.fresh.isEmpty && this.hasRoom && (isSettled || this.freshAtWork < this.mostFresh())) {
      this.count(isSettled);
      return work();
    }
    callsWaiting.inc();
    (isSettled ? this.settled : this.fresh).add(apiKey, work);
    this.beginWaiting();
  }

  end(isSettled: boolean): void {
    if (isSettled) this.settledAtWork--;
    else this.freshAtWork--;
    this.beginWaiting();
  }

  private beginWaiting(): void {
    // A work may end at once, and that calls this again.
    if (this.isBeginning) return;
    this.isBeginning = true;
    try {
      for (let work = this.next(); work; work = this.next()) {
        callsWaiting.dec();
        work();
      }
    } finally {
      this.isBeginning = false;
    }
  }

  /** New keys come first up to a small number, so that settled ones with many calls do not keep them out. */
  private next(): Work | undefined {
    if (!this.hasRoom) return undefined;
    const isFresh = () => !this.fresh.isEmpty && this.freshAtWork < this.mostFresh();
    if (this.freshAtWork < MOST_BESIDE_SETTLED && isFresh()) return this.first(false);
    if (!this.settled.isEmpty) return this.first(true);
    return isFresh() ? this.first(false) : undefined;
  }

  private first(isSettled: boolean): Work | undefined {
    this.count(isSettled);
    let first: Work | undefined;
    (isSettled ? this.settled : this.fresh).take((work) => {
      if (first) return false;
      first = work;
      return true;
    });
    return first;
  }

  private count(isSettled: boolean): void {
    if (!isSettled) this.freshAtWork++;
    else {
      this.settledAtWork++;
      this.settledAt = performance.now();
    }
  }

  private get hasRoom(): boolean {
    return this.settledAtWork + this.freshAtWork < this.most;
  }

  private mostFresh(): number {
    const isBeside = this.settledAtWork > 0 || performance.now() - this.settledAt <= PROTECTED_MS;
    return isBeside ? Math.max(MOST_BESIDE_SETTLED, this.settledAtWork) : Infinity;
  }
}

/**
 * Lets API keys take turns for the beginning of their calls, because in the queues behind this process nobody knows whose call should be next. Few
 * calls of new keys are at work beside settled ones: the share of a key protects from one other key, but not from a thousand.
 *
 * It does not limit the waiting calls: they hold places.
 */
export class CallTurns {
  private readonly turns = Object.fromEntries(
    KINDS.map((kind) => [kind, new Turns(kind.endsWith('queries') ? MOST_QUERIES : Infinity)]),
  ) as Record<Kind, Turns>;

  /** Begins the work of a call now or in its turn. Call {@link end} once, when it has ended. */
  begin(kind: Kind, apiKey: string, isSettled: boolean, work: Work): void {
    this.turns[kind].begin(apiKey, isSettled, work);
  }

  /** @param isSettled as it was at the beginning */
  end(kind: Kind, isSettled: boolean): void {
    this.turns[kind].end(isSettled);
  }
}
