import { Backoff } from '@app/amqp/backoff';

/** A time without the database: begins with the first who notices, ends for all when the probe succeeds. */
export class Pause {
  private readonly closing = new AbortController();
  private readonly backoff = new Backoff();
  private over?: Promise<void>;

  /**
   * @param probe resolves when the database is back; must settle by itself within seconds
   * @param onChange called with true when a pause begins and with false when it is over
   */
  constructor(
    private readonly probe: () => Promise<void>,
    private readonly onChange: (paused: boolean) => void,
  ) {}

  get active(): boolean {
    return this.over !== undefined;
  }

  get stopped(): boolean {
    return this.closing.signal.aborted;
  }

  /** Begins a pause, or joins the one that is. Resolves when it is over, or at {@link stop}. */
  begin(): Promise<void> {
    return (this.over ??= this.run());
  }

  stop(): void {
    this.closing.abort();
  }

  private async run(): Promise<void> {
    const { signal } = this.closing;
    this.onChange(true);
    for (let back = false; !back && !signal.aborted;) {
      await this.backoff.wait(signal);
      back = await this.probe().then(
        () => true,
        () => false,
      );
    }
    this.backoff.succeeded();
    this.over = undefined;
    this.onChange(false);
  }
}
