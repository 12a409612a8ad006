/** Smaller bodies count as nothing. */
export const LARGE_BODY_BYTES = 64 * 1024;
/** More than a process can execute: only bodies that are refused come faster. */
const BYTES_A_SECOND = 16 * 1024 * 1024;
/** May come at once. */
const BURST_BYTES = 4 * 1024 * 1024;
/** With less of it left, large bodies are many. */
const SHORT_BYTES = BURST_BYTES / 2;
/** Time without such a shortage after which they are few again. */
const QUIET_MS = 2000;
/** After as many deliveries of a new channel, and none with a large body, the others count as small, too. */
const ENOUGH_SMALL = 4;

/** What {@link LargeBodies} orders. */
export interface PacedConsumer {
  pause(): void;
  /** Consumes, with few deliveries at a time if it {@link LargeBodies.areMany}. */
  resume(): void;
}

/**
 * Slows a consumer down that gets many bytes of large bodies. The broker limits deliveries by number only, and a process that reads hundreds of MiB has
 * no time for others. While the queue waits it becomes full, and a full queue refuses messages before they are written to the log of the broker, which all
 * queues share.
 */
export class LargeBodies {
  /** Whether it should have few deliveries at a time. */
  areMany = false;
  /** Whether nothing is known yet about the deliveries of a channel. */
  private isNew = false;
  private small = 0;
  private budget = BURST_BYTES;
  private countedAt = -Infinity;
  private shortAt = -Infinity;
  private isPaused = false;
  private timer?: NodeJS.Timeout;

  constructor(private readonly consumer: PacedConsumer) {}

  /** A new channel: what waits in the queue is unknown, and the broker would send all that the prefetch allows at once. */
  begin(): void {
    this.count();
    this.shortAt = this.countedAt;
    this.areMany = true;
    if (this.isPaused) return;
    this.isNew = true;
    this.small = 0;
    this.lookAfter(QUIET_MS);
  }

  /** Call it for each delivery. */
  delivered(bytes: number): void {
    if (bytes < LARGE_BODY_BYTES) return this.deliveredSmall();
    this.isNew = false;
    this.count();
    this.budget -= bytes;
    if (this.budget < SHORT_BYTES) this.shortAt = this.countedAt;
    if (this.budget >= 0 || this.isPaused) return;
    this.areMany = this.isPaused = true;
    this.consumer.pause();
    this.look();
  }

  end(): void {
    clearTimeout(this.timer);
  }

  private deliveredSmall(): void {
    if (!this.isNew || ++this.small < ENOUGH_SMALL) return;
    this.end();
    this.areMany = this.isNew = false;
    this.consumer.resume();
  }

  private count(): void {
    const now = performance.now();
    this.budget = Math.min(BURST_BYTES, this.budget + ((now - this.countedAt) * BYTES_A_SECOND) / 1000);
    this.countedAt = now;
  }

  private look(): void {
    this.count();
    if (this.budget < 0) return this.lookAfter((-this.budget * 1000) / BYTES_A_SECOND);
    // While it was paused, nothing could come.
    if (this.isPaused) this.shortAt = this.countedAt;
    const quietMs = this.countedAt - this.shortAt;
    this.areMany = quietMs < QUIET_MS;
    if (this.areMany) this.lookAfter(QUIET_MS - quietMs);
    if (!this.isPaused && this.areMany) return;
    this.isNew &&= this.areMany;
    this.isPaused = false;
    this.consumer.resume();
  }

  private lookAfter(ms: number): void {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.look(), Math.ceil(ms)).unref();
  }
}
