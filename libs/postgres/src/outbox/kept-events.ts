import { waitAfter } from '@app/runtime/wait-after';

/** Events of the outbox that must be published again, by `seq`. The relay skips them for a while, so that they do not block other events. */
export class KeptEvents {
  private readonly seqs = new Set<string>();
  private rounds = 0;
  private timer?: NodeJS.Timeout;

  /** @param comeBack called when no event is skipped any more */
  constructor(private readonly comeBack: () => void) {}

  get all(): string[] {
    return [...this.seqs];
  }

  /** @returns the number of waits since the outbox was empty, if this call starts a wait; else undefined. The waits grow with this number */
  add(seqs: readonly string[]): number | undefined {
    for (const seq of seqs) this.seqs.add(seq);
    if (this.timer) return undefined;
    this.timer = setTimeout(() => this.end(), waitAfter(++this.rounds)).unref();
    return this.rounds;
  }

  /** Reports that the relay has published all other events. */
  emptied(): void {
    if (this.seqs.size === 0) this.rounds = 0;
  }

  stop(): void {
    clearTimeout(this.timer);
  }

  private end(): void {
    this.timer = undefined;
    this.seqs.clear();
    this.comeBack();
  }
}
