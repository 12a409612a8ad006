/** While fewer messages to one queue are unconfirmed, the next one is not delayed. A limit of 1 makes commands wait for the whole broker. */
const MOST_UNCONFIRMED = 4;

/**
 * Longest time without a confirm, before calls that nothing was sent for are refused: a caller gets 503 within a second. The queue has perhaps
 * lost the majority of its nodes. An election after the end of one node takes less.
 */
const SILENT_MS = 900;

/** How often a silent queue is looked at again. */
const LOOK_EVERY_MS = 300;

export const SILENT = `its queue has confirmed nothing for ${SILENT_MS / 1000} s`;

/** The messages to one queue that the broker has not confirmed. They show when a silent queue takes messages again. */
export class QueueConfirms {
  private unconfirmed = 0;
  /** Time of the last confirm, or of the first message after everything was confirmed. In milliseconds of `performance.now()`. */
  private silentSince = 0;
  private silent = false;
  private watching?: NodeJS.Timeout;

  /**
   * @param onSilent called again and again while the queue is silent
   * @param most unconfirmed messages, before the next one waits for a confirm
   */
  constructor(
    private readonly onSilent?: () => void,
    private readonly most = MOST_UNCONFIRMED,
  ) {}

  /** Counts a message until `publish` has ended. @throws what `publish` throws */
  async during<T>(publish: () => Promise<T>): Promise<T> {
    if (this.unconfirmed++ === 0) this.silentSince = performance.now();
    if (this.onSilent) this.watch(SILENT_MS);
    try {
      return await publish();
    } finally {
      this.unconfirmed--;
      this.silentSince = performance.now();
      this.silent = false;
    }
  }

  /** Whether the next message waits for a confirm. */
  get isFull(): boolean {
    return this.unconfirmed >= this.most;
  }

  /** Whether calls are refused. */
  get isSilent(): boolean {
    return this.silent && this.isFull;
  }

  /** The broker took no messages from anyone until now, so the time before says nothing about the queue. */
  restart(): void {
    this.silentSince = performance.now();
    this.silent = false;
  }

  /** How long there was something to confirm and no confirm. 0: everything was confirmed. */
  get silentMs(): number {
    return this.unconfirmed > 0 ? performance.now() - this.silentSince : 0;
  }

  private watch(afterMs: number): void {
    // After the poll phase: a process that stood still may have confirms in its socket that it has not read yet.
    this.watching ??= setTimeout(() => setImmediate(() => this.look()), afterMs).unref();
  }

  private look(): void {
    this.watching = undefined;
    if (this.unconfirmed === 0) return;
    const restMs = SILENT_MS - this.silentMs;
    this.watch(restMs > 0 ? restMs : LOOK_EVERY_MS);
    if (restMs > 0) return;
    this.silent = true;
    this.onSilent?.();
  }
}
