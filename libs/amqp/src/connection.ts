import { EventEmitter } from 'node:events';
import type { ChannelModel } from 'amqplib';
import { Backoff } from './backoff';
import type { Observer } from './observer';
import { destroySocket, openConnection, parseBrokerUrl, type ConnectionOptions } from './open-connection';
import { within } from './within';
import { tlsProblem } from '@app/runtime/tls-files';

export type { ConnectionOptions } from './open-connection';

/** `blocked`: the broker is short of memory or disk and takes no messages. It reports that only after a publication. */
export type ConnectionState = 'up' | 'blocked' | 'down';

const CLOSE_TIMEOUT_MS = 1000;

/**
 * One AMQP connection that reconnects for ever, with growing waits of at most 5 s.
 *
 * It has its own loop, because amqplib's recovery restores only the connection. Channels and consumers, which the broker may also close alone,
 * would need the same loop again.
 *
 * Events: `up` with the new connection, `state` after each change of {@link state}.
 */
export class RabbitConnection extends EventEmitter<{ up: [ChannelModel]; state: [ConnectionState] }> {
  /** Broker account. The broker accepts only this name in `user_id`. */
  readonly username: string;
  private readonly closing = new AbortController();
  private readonly backoff = new Backoff();
  private model?: ChannelModel;
  private blocked = false;
  private ended: Promise<void> = Promise.resolve();
  private started = false;

  /** @throws Error when the URL is not a valid broker URL */
  constructor(
    readonly options: ConnectionOptions,
    readonly observer: Observer,
  ) {
    super();
    this.username = parseBrokerUrl(options.url).username;
    // Each channel and each reply that waits for a channel adds a listener.
    this.setMaxListeners(0);
  }

  get state(): ConnectionState {
    return !this.model ? 'down' : this.blocked ? 'blocked' : 'up';
  }

  /** The open connection, if there is one. */
  get current(): ChannelModel | undefined {
    return this.model;
  }

  /** Starts to connect; does not wait for the broker. */
  start(): void {
    if (this.started || this.closing.signal.aborted) return;
    this.started = true;
    this.ended = this.run();
  }

  /** Closes the connection. Data written before is delivered, if that takes less than 1 s. */
  async close(): Promise<void> {
    this.closing.abort();
    const { model } = this;
    if (model) {
      // The promise of close() never settles when the connection ends in another way.
      model.close().catch(() => undefined);
      const timer = setTimeout(() => destroySocket(model), CLOSE_TIMEOUT_MS);
      await this.ended;
      clearTimeout(timer);
    }
    // A running attempt to connect is not awaited: it closes its connection itself.
    await within(CLOSE_TIMEOUT_MS, this.ended);
  }

  private async run(): Promise<void> {
    const { signal } = this.closing;
    while (!signal.aborted) {
      try {
        await this.live(await openConnection(this.options, this.observer.log));
      } catch (error) {
        if (!signal.aborted) this.log(`no connection: ${reason(error)}`);
      }
      if (signal.aborted) return;
      await this.backoff.wait(signal);
      this.observer.reconnecting(this.options.name);
    }
  }

  /** Resolves when the connection has ended. */
  private async live(model: ChannelModel): Promise<void> {
    const ended = new Promise<Error | undefined>((resolve) => {
      model.once('close', resolve);
      model.once('error', resolve);
    });
    model.on('blocked', () => this.setBlocked(true));
    model.on('unblocked', () => this.setBlocked(false));
    if (this.closing.signal.aborted) return void (await model.close().catch(() => undefined));

    this.backoff.succeeded();
    this.model = model;
    this.setBlocked(false);
    this.observer.log('info', { msg: 'connected to the broker', connection: this.options.name });
    this.emit('up', model);

    const error = await ended;
    this.model = undefined;
    this.setBlocked(false);
    destroySocket(model);
    if (!this.closing.signal.aborted) this.log(`connection lost: ${reason(error)}`);
  }

  private setBlocked(blocked: boolean): void {
    if (blocked && !this.blocked) this.log('the broker is short of memory or disk and takes no messages');
    this.blocked = blocked;
    this.observer.blocked(this.options.name, blocked);
    this.emit('state', this.state);
  }

  private log(msg: string): void {
    this.observer.log('warn', { msg, connection: this.options.name });
  }
}

const reason = (error: unknown) =>
  tlsProblem(error) ?? (error instanceof Error ? error.message || (error as NodeJS.ErrnoException).code : 'no reason given');
