import { Backoff } from '@app/amqp/backoff';
import { within } from '@app/amqp/within';

/** Milliseconds. A restart of the database takes less: nobody has to notice it. */
const RESTART_MS = 1000;
/** Callers are refused until a probe succeeds. */
const MOST_BETWEEN_PROBES_MS = 1000;

/** `away`: since a moment. `long`: for longer than a restart takes. */
export type DatabaseState = 'here' | 'away' | 'long';

/** A time without the database: begins with the first delivery that notices, ends for all when the probe succeeds. */
export class DatabasePause {
  private readonly closing = new AbortController();
  private readonly backoff = new Backoff(100, MOST_BETWEEN_PROBES_MS);
  private over?: Promise<void>;
  private restart: Promise<boolean> = Promise.resolve(true);

  /**
   * @param probe resolves when the database is back; must settle by itself within seconds
   * @param onChange called with each new state
   */
  constructor(
    private readonly probe: () => Promise<void>,
    private readonly onChange: (state: DatabaseState) => void,
  ) {}

  get active(): boolean {
    return this.over !== undefined;
  }

  get stopped(): boolean {
    return this.closing.signal.aborted;
  }

  /** Begins a pause, or joins the one that is. Resolves when it is over, or at {@link stop}. */
  begin(): Promise<void> {
    if (!this.over) {
      this.over = this.run();
      this.restart = this.watch(this.over);
    }
    return this.over;
  }

  /** Resolves with true as soon as the pause is over, and with false once it has lasted longer than a restart does. */
  isRestart(): Promise<boolean> {
    return this.over ? this.restart : Promise.resolve(true);
  }

  stop(): void {
    this.closing.abort();
  }

  private async watch(over: Promise<void>): Promise<boolean> {
    const isOver = await within(RESTART_MS, over);
    if (!isOver) this.onChange('long');
    return isOver;
  }

  private async run(): Promise<void> {
    const { signal } = this.closing;
    this.onChange('away');
    for (let back = false; !back && !signal.aborted;) {
      await this.backoff.wait(signal);
      back = await this.probe().then(
        () => true,
        () => false,
      );
    }
    this.backoff.succeeded();
    this.over = undefined;
    this.onChange('here');
  }
}
