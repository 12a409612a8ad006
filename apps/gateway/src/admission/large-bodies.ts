import { FairQueue } from '@app/runtime/fair-queue';
import { LightWork } from '@app/runtime/light-work';
import { MAX_BODY_BYTES } from '@app/contracts/json';
import { callsWaiting } from '../server/metrics';

/** A body above this size is large. */
export const LARGE_BYTES = 16 * 1024;

/** Bytes of large bodies at work, of one key and of all, above which the next one waits: they fill what small calls of other keys need, too. */
const MOST_BYTES = { ofKey: 12 * 1024 * 1024, ofAll: 16 * 1024 * 1024 };
/**
 * The same beside small calls of other keys: one of the largest bodies of each of two keys, so that a call that hangs stops its own key only. A key
 * counts with one largest body, because it may have begun more of them before those calls.
 */
const MOST_BYTES_BESIDE = { ofKey: 512 * 1024, ofAll: 1536 * 1024 };
/** Longest rest after a call that has hung. */
const MOST_REST_MS = 1000;
/** Nothing else begins what waits when the small calls of others have ended. */
const LOOK_AFTER_MS = 100;

interface Waiting {
  bytes: number;
  work: () => void;
}

/**
 * Lets API keys take turns for their large bodies, from the parsing of a body to its answer: each step takes many times as long as for a small call.
 * Beside small calls of other keys few bytes are at work, and they leave their room unused for as long again as they have taken.
 *
 * It does not limit the waiting bodies: their bytes have shares.
 */
export class LargeBodies {
  private readonly waiting = new FairQueue<Waiting>();
  private readonly light = new LightWork();
  private readonly atWork = new Map<string, number>();
  private allAtWork = 0;
  /** The same, with one largest body of each key at most. */
  private allBeside = 0;
  private look?: NodeJS.Timeout;

  /** A call of this key with a small body begins. */
  smallCall(apiKey: string): void {
    this.light.started(apiKey, performance.now());
  }

  /**
   * Begins the work in its turn, not before the next iteration of the event loop. Call {@link end} once, when the call has ended.
   *
   * @returns gives up the turn. It returns false when the turn had come, or was given up; if true, the work never begins
   */
  begin(apiKey: string, bytes: number, work: () => void): () => boolean {
    const body = { bytes, work };
    callsWaiting.inc();
    this.waiting.add(apiKey, body);
    this.beginWaiting();
    return () => {
      const isWaiting = this.waiting.remove(apiKey, body);
      if (isWaiting) callsWaiting.dec();
      return isWaiting;
    };
  }

  /** Whether a large body of the key waits, is at work, or keeps its room unused. */
  has(apiKey: string): boolean {
    return this.waiting.has(apiKey) || this.of(apiKey) > 0;
  }

  /** @param ms time since its turn came */
  end(apiKey: string, bytes: number, ms: number): void {
    const leave = () => {
      this.change(apiKey, -bytes);
      this.beginWaiting();
    };
    if (this.light.isBeside(apiKey, performance.now())) setTimeout(leave, Math.min(MOST_REST_MS, ms)).unref();
    else leave();
  }

  private beginWaiting(): void {
    const now = performance.now();
    for (;;) {
      let owner = '';
      const body = this.waiting.takeFirst((apiKey) => this.mayBegin((owner = apiKey), now));
      if (!body) break;
      this.change(owner, body.bytes);
      callsWaiting.dec();
      setImmediate(body.work);
    }
    if (this.waiting.isEmpty) return;
    this.look ??= setTimeout(() => {
      this.look = undefined;
      this.beginWaiting();
    }, LOOK_AFTER_MS).unref();
  }

  private mayBegin(apiKey: string, now: number): boolean {
    if (this.of(apiKey) >= MOST_BYTES.ofKey || this.allAtWork >= MOST_BYTES.ofAll) return false;
    if (!this.light.isBeside(apiKey, now)) return true;
    return this.of(apiKey) < MOST_BYTES_BESIDE.ofKey && this.allBeside < MOST_BYTES_BESIDE.ofAll;
  }

  private of(apiKey: string): number {
    return this.atWork.get(apiKey) ?? 0;
  }

  private change(apiKey: string, bytes: number): void {
    this.allAtWork += bytes;
    const before = this.of(apiKey);
    const left = before + bytes;
    this.allBeside += Math.min(left, MAX_BODY_BYTES) - Math.min(before, MAX_BODY_BYTES);
    if (left > 0) this.atWork.set(apiKey, left);
    else this.atWork.delete(apiKey);
  }
}
