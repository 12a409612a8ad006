import { ApiError } from '@app/contracts/error';

/** Bytes of the bodies, which may wait for minutes while the broker is away. */
const MOST_BYTES = 128 * 1024 * 1024;
/** Memory that the work itself takes. */
const WORK_BYTES = 1024;

/** Publications and calls that have not ended. */
export class RunningWork {
  private readonly works = new Set<Promise<unknown>>();
  private bytes = 0;

  /** Begins a work, and waits for it. @throws ApiError UNAVAILABLE at once when too much runs already */
  async add<T>(body: Buffer, begin: () => Promise<T>): Promise<T> {
    const bytes = body.length + WORK_BYTES;
    if (this.bytes + bytes > MOST_BYTES)
      throw new ApiError('UNAVAILABLE', 'Too much waits for the broker or for answers; nothing was done.');
    this.bytes += bytes;
    const work = begin();
    this.works.add(work);
    try {
      return await work;
    } finally {
      this.works.delete(work);
      this.bytes -= bytes;
    }
  }

  /** Resolves when all that runs now has ended. */
  ended(): Promise<unknown> {
    return Promise.allSettled(this.works);
  }
}
