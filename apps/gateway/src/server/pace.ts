import { FairQueue } from '@app/runtime/fair-queue';
import { inNextIteration } from './in-next-iteration';

/** `begin` is absent when it has begun, or is not wanted any more. */
interface Work {
  begin?: () => void;
}

/** Work of which only a few pieces begin in one iteration of the event loop, so that a flood of it does not delay the calls in flight. */
export class Pace {
  private readonly queue = new FairQueue<Work>();
  private queued = 0;
  /** Pieces in the queue that are not wanted any more. */
  private unwanted = 0;
  private begun = 0;
  private readonly schedule = inNextIteration(() => this.nextIteration());

  /** @param most pieces that begin in one iteration */
  constructor(private readonly most: number) {}

  /** Whether a piece may begin in this iteration. */
  get isFree(): boolean {
    return this.begun < this.most && this.queued === 0;
  }

  /** Begins now, if {@link isFree}, else later. */
  begin(work: () => void): void {
    if (!this.isFree) return void this.later(work);
    this.begun++;
    this.schedule();
    work();
  }

  /**
   * Begins in a later iteration, after what waits already. Owners take turns.
   *
   * @returns removes the work, if it has not begun
   */
  later(begin: () => void, owner = ''): () => void {
    const work: Work = { begin };
    this.queue.add(owner, work);
    this.queued++;
    this.schedule();
    return () => this.remove(work);
  }

  private remove(work: Work): void {
    if (!work.begin) return;
    work.begin = undefined;
    this.queued--;
    // Not each one by itself: a flood has tens of thousands, and its connections end together.
    if (++this.unwanted <= this.queued) return;
    this.queue.keep(({ begin }) => begin !== undefined);
    this.unwanted = 0;
  }

  private nextIteration(): void {
    const works: (() => void)[] = [];
    this.queue.take((work) => {
      if (!work.begin) this.unwanted--;
      else if (works.length === this.most) return false;
      else works.push(work.begin);
      work.begin = undefined;
      return true;
    });
    this.queued -= works.length;
    this.begun = works.length;
    // Before the works begin: one that throws must not stop the others.
    if (works.length > 0) this.schedule();
    for (const work of works) work();
  }
}
