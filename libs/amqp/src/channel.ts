import { EventEmitter, setMaxListeners } from 'node:events';
import type { Channel, ChannelModel } from 'amqplib';
import { Backoff } from './backoff';
import type { RabbitConnection } from './connection';
import { within } from './within';

const CLOSE_TIMEOUT_MS = 1000;

/** Longest time for the opening of a channel, and then for its setup. */
const OPEN_TIMEOUT_MS = 10_000;

/** Setups in a row that may take too long, before a connection with other channels is given up: the broker may keep each of these channels. */
const MOST_SLOW_SETUPS = 20;

export interface ChannelOptions<C extends Channel> {
  /** For the log and the readiness check. */
  name: string;
  open: (model: ChannelModel) => Promise<C>;
  /** Makes a new channel ready for use. When it fails, the channel is opened again after a wait. */
  setup: (channel: C) => Promise<void>;
  /** Longest time for `open`, and then for `setup`, in milliseconds. Default 10,000. */
  timeoutMs?: number;
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
  private problem?: string;
  /** What it waits for while it is not usable. */
  private step = 'opening a channel';
  private slowSetups = 0;

  constructor(
    readonly connection: RabbitConnection,
    private readonly options: ChannelOptions<C>,
  ) {
    super();
    this.setMaxListeners(0);
    // Every reply that waits for the channel adds a listener.
    setMaxListeners(0, this.closing.signal);
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
    return this.channel ? undefined : (this.problem ?? `${this.options.name}: ${this.step} at ${this.connection.address}`);
  }

  /** Waits until it is usable. @returns false after `timeoutMs` milliseconds, or when it is closed for good */
  async whenReady(timeoutMs: number): Promise<boolean> {
    if (this.check() === undefined) return true;
    if (this.closing.signal.aborted || timeoutMs <= 0) return false;
    return new Promise((resolve) => {
      const finish = (ready: boolean) => {
        clearTimeout(timer);
        this.off('open', look);
        this.connection.off('state', look);
        this.closing.signal.removeEventListener('abort', giveUp);
        resolve(ready);
      };
      const look = () => this.check() === undefined && finish(true);
      const giveUp = () => finish(false);
      const timer = setTimeout(giveUp, timeoutMs);
      this.on('open', look);
      this.connection.on('state', look);
      this.closing.signal.addEventListener('abort', giveUp);
    });
  }

  /** Closes after everything written before has reached the broker. Takes at most 1 s. */
  async close(): Promise<void> {
    this.closing.abort();
    if (this.channel) closeQuietly(this.channel);
    await within(CLOSE_TIMEOUT_MS, this.ended);
  }

  private async run(): Promise<void> {
    const { signal } = this.closing;
    const backoff = new Backoff();
    while (!signal.aborted) {
      const model = this.connection.current ?? (await this.nextConnection());
      if (!model) return;
      await this.live(model, backoff);
      if (this.connection.current !== model) this.problem = undefined;
      // Without the connection there is nothing to retry: the next connection opens the channel.
      if (this.connection.current === model) await backoff.wait(signal);
    }
  }

  private nextConnection(): Promise<ChannelModel | undefined> {
    return new Promise((resolve) => {
      const finish = (model?: ChannelModel) => {
        this.connection.off('up', finish);
        this.closing.signal.removeEventListener('abort', onAbort);
        resolve(model);
      };
      const onAbort = () => finish();
      this.connection.once('up', finish);
      this.closing.signal.addEventListener('abort', onAbort);
      if (this.closing.signal.aborted) finish();
    });
  }

  /** Resolves when the channel has ended, or could not be set up. */
  private async live(model: ChannelModel, backoff: Backoff): Promise<void> {
    let channel: C | undefined;
    try {
      this.step = 'opening a channel';
      channel = await this.inTime(this.options.open(model));
      const ended = endOf(channel, (error, event) => this.log('error', `a listener of ${event} threw: ${error.stack}`));
      this.step = 'setting up the channel';
      await this.inTime(this.options.setup(channel));
      backoff.succeeded();
      this.slowSetups = 0;
      if (!this.closing.signal.aborted) {
        this.problem = undefined;
        this.channel = channel;
        this.connection.usable.add(this);
        this.emit('open', channel);
      } else closeQuietly(channel);
      const error = await ended;
      if (error && !this.closing.signal.aborted) this.log('warn', `channel lost: ${error.message}`);
    } catch (error) {
      this.problem = (error as Error).message;
      if (this.connection.current === model && !this.closing.signal.aborted) this.log('error', this.problem);
      if (error instanceof TooSlow && this.isHung(channel)) this.connection.giveUp(model, this.problem);
      else if (channel) closeQuietly(channel);
    } finally {
      if (this.channel) {
        this.connection.usable.delete(this);
        this.channel = undefined;
        this.emit('lost');
      }
    }
  }

  /** @throws TooSlow when the broker takes too long */
  private async inTime<T>(work: Promise<T>): Promise<T> {
    const { name, timeoutMs = OPEN_TIMEOUT_MS } = this.options;
    if (!(await within(timeoutMs, work)))
      throw new TooSlow(`${name}: ${this.step} at ${this.connection.address} took over ${timeoutMs / 1000} s`);
    return work;
  }

  /**
   * Whether the node of the connection does no work. A channel is opened by this node alone. Its setup may also wait for another node, which has
   * a queue: then the other channels of the connection go on.
   */
  private isHung(channel: C | undefined): boolean {
    return !channel || this.connection.usable.size === 0 || ++this.slowSetups > MOST_SLOW_SETUPS;
  }

  private log(level: 'warn' | 'error', msg: string): void {
    this.connection.observer.log(level, {
      msg,
      channel: this.options.name,
      connection: this.connection.options.name,
      address: this.connection.address,
    });
  }
}

class TooSlow extends Error {}

const CLOSED = new WeakSet<Channel>();

/** Whether a channel that a {@link RabbitChannel} opened is gone. */
export const isChannelClosed = (channel: Channel): boolean => CLOSED.has(channel);

/** Resolves when the channel closes, with the error that closed it if there was one. */
function endOf(channel: Channel, onListenerError: (error: Error, event: string) => void): Promise<Error | undefined> {
  return new Promise((resolve) => {
    let cause: Error | undefined;
    channel.on('error', (error) => (cause = error));
    channel.on('close', () => {
      CLOSED.add(channel);
      resolve(cause);
    });
    // Without this listener, an exception in any listener or consumer callback makes amqplib close the whole connection.
    channel.on('handler-error', onListenerError);
  });
}

/** Closes without waiting: the answer never arrives when the connection ends first. */
export function closeQuietly(channel: Channel): void {
  try {
    channel.close().catch(() => undefined);
  } catch {
    // It is closed already.
  }
}
