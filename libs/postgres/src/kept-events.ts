import { waitAfter } from './backoff';

/** Where those events of the outbox are that have to be published again. They are left out for a while, so that they hold up no others. */
export class KeptEvents {
  private readonly seqs = new Set<string>();
  private rounds = 0;
  private timer?: NodeJS.Timeout;

  /** @param comeBack called when their time has come: none is left out any more */
  constructor(private readonly comeBack: () => void) {}

  get all(): string[] {
    return [...this.seqs];
  }

  /** @returns how often there was something to keep since all was well, when this begins a wait; the waits grow with it */
  add(seqs: readonly string[]): number | undefined {
    for (const seq of seqs) this.seqs.add(seq);
    if (this.timer) return undefined;
    this.timer = setTimeout(() => this.end(), waitAfter(++this.rounds)).unref();
    return this.rounds;
  }

  /** The outbox was emptied as far as it goes. */
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
