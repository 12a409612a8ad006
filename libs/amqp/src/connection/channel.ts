import { EventEmitter, once } from 'node:events';
import type { Channel, ChannelModel } from 'amqplib';
import { Backoff } from './backoff';
import type { RabbitConnection } from './connection';
import { Failures } from './failures';
import { IN_USE } from './leave-node';
import { closeQuietly, endOf, isChannelClosed, NotYet, OPENING, SETTING_UP, TooSlow, type Opened } from './opened-channel';
import { LONGEST_MS, within } from '@app/runtime/within';

const CLOSE_TIMEOUT_MS = 1000;
/** Longest time for the opening of a channel, and then for its setup. */
const OPEN_TIMEOUT_MS = 10_000;

/** Setups in a row that may take too long, before a connection with other channels is given up: the broker may keep each of these channels. */
const MOST_SLOW_SETUPS = 20;

export interface ChannelOptions<C extends Channel> {
  /** For the log and the readiness check. */
  name: string;
  open: (model: ChannelModel) => Promise<C>;
  /** Makes a new channel ready for use, or to replace another one (`isNext`). When it fails, the channel is opened again after a wait. */
  setup: (channel: C, isNext: boolean) => Promise<void>;
  /**
   * Resolves when a channel that another one has replaced is no longer needed, and takes no new work from now on. Without it the connection does
   * not move to another node.
   */
  drain?: (channel: C) => Promise<unknown>;
  /** Longest time for `open`, in milliseconds. Default 10,000. */
  timeoutMs?: number;
  /** Longest time for `setup`, in milliseconds. Default: `timeoutMs`. */
  setupMs?: number;
}

/**
 * A channel that is opened and set up again whenever the channel or its connection is lost.
 *
 * Events: `open` once it is set up, `lost` when it no longer is.
 */
export class RabbitChannel<C extends Channel> extends EventEmitter<{ open: [C]; lost: [] }> {
  private readonly closing = new AbortController();
  private readonly ended: Promise<void>;
  private channel?: C;
  /** Callers that wait until it is usable. As listeners of an event, the end of each would search through all of them. */
  private readonly waiting = new Set<(ready: boolean) => void>();
  private readonly failures = new Failures();
  private notYet?: NotYet;
  /** The event that it waits for while it is not usable. */
  private step = OPENING;
  /** Lets another channel take the place of the current one. */
  private replace?: (next: Opened<C>) => void;
  private slowSetups = 0;

  constructor(
    readonly connection: RabbitConnection,
    private readonly options: ChannelOptions<C>,
  ) {
    super();
    this.setMaxListeners(0);
    this.on('open', this.look);
    connection.on('state', this.look);
    connection.channels.add(this);
    IN_USE.add(connection);
    this.ended = this.run();
  }

  /** The channel while it is usable. */
  get current(): C | undefined {
    return this.channel;
  }

  /** undefined when it is usable and the broker takes messages, else a short reason without secrets. */
  check(): string | undefined {
    const { state } = this.connection;
    if (state === 'down') return this.connection.waitsFor;
    if (state === 'blocked') return 'the broker is short of memory or disk';
    if (this.channel) return undefined;
    return this.failures.latest ?? `${this.options.name}: ${this.step} at ${this.connection.address}`;
  }

  /** Waits until it is usable. @returns false after `timeoutMs` milliseconds, or when it is closed for good */
  async whenReady(timeoutMs: number): Promise<boolean> {
    if (this.check() === undefined) return true;
    if (this.closing.signal.aborted || timeoutMs <= 0) return false;
    return new Promise((resolve) => {
      const finish = (ready: boolean) => {
        clearTimeout(timer);
        this.waiting.delete(finish);
        resolve(ready);
      };
      const timer = setTimeout(finish, Math.min(timeoutMs, LONGEST_MS), false);
      this.waiting.add(finish);
    });
  }

  /** Whether it can follow its connection to another node. */
  get canMove(): boolean {
    return this.options.drain !== undefined;
  }

  /** Opens and sets up a channel on the next connection, which can then take over from the current one. */
  async prepare(model: ChannelModel, address: string) {
    const next = await this.openOn(model, address, true);
    return {
      isReady: !isChannelClosed(next.channel),
      takeOver: async (): Promise<unknown> => {
        const earlier = this.channel;
        if (!earlier || this.closing.signal.aborted) return closeQuietly(next.channel);
        this.channel = next.channel;
        this.replace?.(next);
        this.emit('open', next.channel);
        return this.options.drain?.(earlier);
      },
    };
  }

  /** Closes this channel and opens another one. It is no longer the current one: amqplib refuses messages to a channel that is closing. */
  renew(channel: C): void {
    if (channel === this.channel) this.lose();
    closeQuietly(channel);
  }

  /** Closes after everything written before has reached the broker. Takes at most 1 s. */
  async close(): Promise<void> {
    this.closing.abort();
    this.connection.off('state', this.look);
    for (const finish of this.waiting) finish(false);
    this.connection.channels.delete(this);
    if (this.connection.channels.size === 0) IN_USE.delete(this.connection);
    this.connection.usable.delete(this);
    if (this.channel) closeQuietly(this.channel);
    await within(CLOSE_TIMEOUT_MS, this.ended);
  }

  private readonly look = (): void => {
    if (this.waiting.size > 0 && this.check() === undefined) for (const finish of this.waiting) finish(true);
  };

  private async run(): Promise<void> {
    const { signal } = this.closing;
    const backoff = new Backoff();
    while (!signal.aborted) {
      const model = this.connection.current ?? (await this.nextConnection());
      if (!model) return;
      const latest = await this.live(model, backoff);
      // Without the connection there is nothing to retry: the next connection opens the channel.
      if (this.connection.current === latest) await backoff.wait(signal, this.notYet?.waitMs);
      else this.failures.clear();
    }
  }

  /** @returns undefined when this is closed first */
  private async nextConnection(): Promise<ChannelModel | undefined> {
    const up = once(this.connection, 'up', { signal: this.closing.signal });
    const [model] = (await up.catch(() => [])) as [ChannelModel?];
    return model;
  }

  /** Resolves when the channel, or the one that has replaced it, has ended, or could not be set up. @returns its connection */
  private async live(model: ChannelModel, backoff: Backoff): Promise<ChannelModel> {
    let opened: Opened<C>;
    try {
      opened = await this.openOn(model, this.connection.address);
    } catch (error) {
      const { message } = error as Error;
      this.notYet = error instanceof NotYet ? error : undefined;
      if (message !== this.failures.latest) this.failures.clear();
      const attempts = this.failures.add(message);
      if (attempts > 0 && this.connection.current === model && !this.closing.signal.aborted)
        this.log(this.notYet ? 'warn' : 'error', message, { attempts });
      if (error instanceof TooSlow && this.isHung(error)) this.connection.giveUp(model, message);
      return model;
    }
    backoff.succeeded();
    this.failures.clear();
    this.slowSetups = 0;
    this.notYet = undefined;
    if (this.closing.signal.aborted) closeQuietly(opened.channel);
    else {
      this.channel = opened.channel;
      this.connection.usable.add(this);
      this.emit('open', opened.channel);
    }
    const { error, latest } = await this.endOf(opened);
    if (error && !this.closing.signal.aborted) this.log('warn', `channel lost: ${error.message}`);
    this.lose();
    return latest;
  }

  private lose(): void {
    this.connection.usable.delete(this);
    if (!this.channel) return;
    this.channel = undefined;
    this.emit('lost');
  }

  /** Waits for the end of a channel, or of the one that has replaced it. */
  private async endOf(opened: Opened<C>): Promise<{ error?: Error; latest: ChannelModel }> {
    for (;;) {
      const replaced = new Promise<Opened<C>>((resolve) => (this.replace = resolve));
      const { model: latest, ended } = opened;
      const end = await Promise.race([replaced, ended.then((error) => ({ error, latest }))]);
      if ('channel' in end) opened = end;
      else if (this.channel && this.channel !== opened.channel) opened = await replaced;
      else return end;
    }
  }

  private async openOn(model: ChannelModel, address: string, isNext = false): Promise<Opened<C>> {
    this.step = OPENING;
    const { timeoutMs = OPEN_TIMEOUT_MS, setupMs = timeoutMs } = this.options;
    const channel = await this.inTime(timeoutMs, this.options.open(model), address);
    const ended = endOf(channel, (error, event) => this.log('error', `a listener of ${event} threw: ${error.stack}`));
    try {
      this.step = SETTING_UP;
      await this.inTime(setupMs, this.options.setup(channel, isNext), address);
    } catch (error) {
      closeQuietly(channel);
      throw error;
    }
    return { model, channel, ended };
  }

  /** @throws TooSlow when the broker takes too long */
  private async inTime<T>(timeoutMs: number, work: Promise<T>, address: string): Promise<T> {
    if (!(await within(timeoutMs, work))) throw new TooSlow(this.options.name, this.step, address, timeoutMs);
    return work;
  }

  /**
   * Whether the node of the connection does no work. A channel is opened by this node alone. Its setup may also wait for another node, which has
   * a queue: then the other channels of the connection go on.
   */
  private isHung({ step }: TooSlow): boolean {
    return step === OPENING || this.connection.usable.size === 0 || ++this.slowSetups > MOST_SLOW_SETUPS;
  }

  private log(level: 'warn' | 'error', msg: string, more: { attempts?: number } = {}): void {
    const { observer, options, address } = this.connection;
    observer.log(level, { msg, channel: this.options.name, connection: options.name, address, ...more });
  }
}
