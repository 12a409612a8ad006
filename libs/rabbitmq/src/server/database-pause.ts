import { Backoff } from '@app/amqp/connection/backoff';
import { within } from '@app/runtime/within';
import type { Delivery } from '../delivery/delivery';

/** A restart of the database takes less, in milliseconds: callers need not notice it. */
const RESTART_MS = 1000;
/** Short, because callers are refused until a probe succeeds. */
const MOST_BETWEEN_PROBES_MS = 1000;

/** `away`: not reachable. `long`: not reachable for longer than a restart takes. */
export type DatabaseState = 'here' | 'away' | 'long';

/** For the log. */
export const LOG_LINES: Record<DatabaseState, string> = {
  away: 'the database is away: commands wait',
  long: 'the database is still away: commands with a caller that waits are answered UNAVAILABLE',
  here: 'the database is back',
};

/** A pause while the database is away. The first delivery that fails starts it; a successful probe ends it for all deliveries. */
export class DatabasePause {
  private readonly closing = new AbortController();
  private readonly backoff = new Backoff(100, MOST_BETWEEN_PROBES_MS);
  private over?: Promise<void>;
  private restart: Promise<boolean> = Promise.resolve(true);

  /**
   * @param probe resolves when the database is back; must settle within seconds
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

  /** Starts a pause or joins the current one. Resolves when it is over, or at {@link stop}: from then on there is none. */
  begin(): Promise<void> {
    if (!this.over && !this.stopped) {
      this.over = this.run();
      this.restart = this.watch(this.over);
    }
    return this.over ?? Promise.resolve();
  }

  /**
   * Waits in a pause. No async function, whose frame would keep the delivery until the end of the pause.
   *
   * @returns false when it takes longer than a restart, a caller waits and no handler was started
   */
  mayStart({ mayBeRefused }: Delivery): Promise<boolean> {
    return mayBeRefused ? this.isRestart() : this.begin().then(() => true);
  }

  /**
   * Waits after a query that failed for want of the database, once for each. One that took longer to fail than a restart takes met a silent
   * database, and has no time left.
   *
   * @param since when the query was begun, by `performance.now()`
   * @returns whether it may be tried again
   */
  async mayTryAgain(query: Pick<Delivery, 'mayHaveRun'>, since: number): Promise<boolean> {
    if (query.mayHaveRun || performance.now() - since > RESTART_MS) return false;
    query.mayHaveRun = true;
    void this.begin();
    return this.isRestart();
  }

  stop(): void {
    this.closing.abort();
  }

  /** Resolves with true when the pause is over, or with false when it has lasted longer than a restart. */
  private isRestart(): Promise<boolean> {
    return this.over ? this.restart : Promise.resolve(true);
  }

  private async watch(over: Promise<void>): Promise<boolean> {
    const isOver = await within(RESTART_MS, over);
    if (!isOver) this.onChange('long');
    return isOver;
  }

  private async run(): Promise<void> {
    const { signal } = this.closing;
    this.onChange('away');
    let back = false;
    while (!back && !signal.aborted) {
      await this.backoff.wait(signal);
      back = await this.probe().then(
        () => true,
        () => false,
      );
    }
    this.backoff.succeeded();
    this.over = undefined;
    if (back) this.onChange('here');
  }
}
