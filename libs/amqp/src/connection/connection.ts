import { EventEmitter } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ChannelModel } from 'amqplib';
import { Backoff } from './backoff';
import { BrokerNodes, type BrokerNode } from './broker-nodes';
import { addressText, parseBrokerUrl } from '@app/runtime/settings/broker-url';
import { Failures, reasonOf } from './failures';
import type { Observer } from './observer';
import {
  destroySocket,
  isBlocked,
  isClosed,
  openAt,
  openConnection,
  SHORT_CONNECT_TIMEOUT_MS,
  type ConnectionOptions,
} from './open-connection';
import { within } from '@app/runtime/within';

export type { ConnectionOptions } from './open-connection';

/** `blocked`: the broker is short of memory or disk and takes no messages. It reports that only after a publication. */
export type ConnectionState = 'up' | 'blocked' | 'down';

const CLOSE_TIMEOUT_MS = 1000;
const MOVE_EVERY_MS = 10_000;
/** Longest time that a connection stays open after it was replaced: a call of the client may take 300 s. */
const DRAIN_TIMEOUT_MS = 305_000;

/** Time between two moves in one process: a node that has just returned must not get all connections at once. */
const MOVE_GAP_MS = 1000;
let lastMove = -Infinity;

/** A channel of the connection, which may follow it to another node. */
interface Passenger {
  readonly canMove: boolean;
  /** Opens and sets up the next channel beside the current one. */
  prepare(model: ChannelModel, address: string): Promise<{ readonly isReady: boolean; takeOver(): Promise<unknown> }>;
}

/**
 * One AMQP connection that reconnects for ever, to the next node at once. When every node has failed it waits, longer each time, at most 5 s.
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
  private readonly failures = new Failures();
  /** All channels, and those that are set up on the current connection. */
  readonly channels = new Set<Passenger>();
  readonly usable = new Set<Passenger>();
  readonly nodes: BrokerNodes;
  /** The node of the connection, or of the attempt to connect. */
  private node?: BrokerNode;
  private model?: ChannelModel;
  /** Connections that have been replaced, and are still needed. */
  private readonly retired = new Set<ChannelModel>();
  private onLost: () => void = () => undefined;
  private blocked = false;
  private ended: Promise<void> = Promise.resolve();
  private started = false;

  /** @throws Error when the URL is not a valid broker URL */
  constructor(
    readonly options: ConnectionOptions,
    readonly observer: Observer,
  ) {
    super();
    const { username, addresses } = parseBrokerUrl(options.url);
    this.username = username;
    this.nodes = new BrokerNodes(addresses, options);
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

  /** `host:port` of the node that it is, or will be, connected to; of all nodes while it waits before the next round. */
  get address(): string {
    return this.node?.label ?? this.nodes.addresses.map(addressText).join(', ');
  }

  /** Which node it waits for, and why the latest attempt or connection failed; without secrets. */
  get waitsFor(): string {
    const why = this.failures.latest ? ` (${this.failures.latest})` : '';
    return `not connected to the broker: ${this.node ? 'connecting' : 'waiting to connect'} to ${this.address}${why}`;
  }

  /** Ends a connection to a node that does not do its work. The next one is to another node, if there is one. */
  giveUp(model: ChannelModel, why: string): void {
    if (this.model === model) destroySocket(model, why);
  }

  /** Starts to connect; does not wait for the broker. */
  start(): void {
    if (this.started || this.closing.signal.aborted) return;
    this.started = true;
    this.ended = this.run();
    void this.moveBack();
  }

  /** Closes the connection. Data written before is delivered, if that takes less than 1 s. */
  async close(): Promise<void> {
    this.closing.abort();
    const models = [...this.retired, ...(this.model ? [this.model] : [])].filter((model) => !isClosed(model));
    const closed = models.map((model) => new Promise((resolve) => model.once('close', resolve)));
    // The promise of close() never settles when the connection ends in another way.
    for (const model of models) model.close().catch(() => undefined);
    await within(CLOSE_TIMEOUT_MS, Promise.all(closed));
    for (const model of models) destroySocket(model);
    // A running attempt to connect is not awaited: it closes its connection itself.
    await within(CLOSE_TIMEOUT_MS, this.ended);
  }

  private async run(): Promise<void> {
    const { signal } = this.closing;
    const onAttempt = (node: BrokerNode) => {
      signal.throwIfAborted();
      this.node = node;
    };
    while (!signal.aborted) {
      try {
        await this.live(await openConnection(this.options, this.observer.log, this.nodes, onAttempt));
        // A connection that has lasted is replaced at once. Otherwise a broker that accepts and closes would be called without a pause.
        if (!this.backoff.isStable) await this.backoff.wait(signal);
      } catch (error) {
        this.node = undefined;
        const attempts = this.failures.add(reasonOf(error));
        if (!signal.aborted && attempts > 0) this.log(`no connection: ${this.failures.latest}`, { attempts });
        await this.backoff.wait(signal);
      }
      if (!signal.aborted) this.observer.reconnecting(this.options.name);
    }
  }

  /** Resolves when the connection, or the one that has replaced it, has ended. */
  private async live(model: ChannelModel): Promise<void> {
    if (this.closing.signal.aborted) return void (await model.close().catch(() => undefined));
    const lost = new Promise<void>((resolve) => (this.onLost = resolve));
    this.backoff.succeeded();
    this.adopt(model, this.node!);
    this.emit('up', model);
    return lost;
  }

  private adopt(model: ChannelModel, node: BrokerNode): void {
    const { name } = this.options;
    this.model = model;
    this.node = node;
    this.failures.clear();
    const onEnd = (error?: Error) => this.model === model && this.lose(node, error);
    model.once('close', onEnd);
    model.once('error', onEnd);
    for (const event of ['blocked', 'unblocked'] as const)
      model.on(event, () => this.model === model && this.setBlocked(event === 'blocked'));
    this.setBlocked(isBlocked(model));
    this.observer.connected(name, node.address, true, this.nodes.preferredAddress);
    this.observer.log('info', { msg: 'connected to the broker', connection: name, address: node.label });
  }

  private lose(node: BrokerNode, error?: Error): void {
    const { model } = this;
    this.failures.latest = reasonOf(error);
    if (!this.closing.signal.aborted) this.log(`connection lost: ${this.failures.latest}`);
    this.model = undefined;
    this.node = undefined;
    this.nodes.failed(node);
    this.observer.connected(this.options.name, node.address, false, this.nodes.preferredAddress);
    this.setBlocked(false);
    if (model) destroySocket(model);
    this.onLost();
  }

  /**
   * Looks at random intervals whether the preferred node is back. The interval is random, so that processes do not return together. No process
   * knows the connections of the others, but all of them are spread when each one is where it prefers to be.
   */
  private async moveBack(): Promise<void> {
    const { signal } = this.closing;
    const { moveEveryMs = MOVE_EVERY_MS } = this.options;
    const wait = (ms: number) => sleep(ms, undefined, { signal, ref: false }).catch(() => undefined);
    while (!signal.aborted) {
      await wait(moveEveryMs * (1 + 2 * Math.random()));
      const { model } = this;
      const node = model && [...this.channels].every(({ canMove }) => canMove) ? await this.nodes.preferred() : undefined;
      if (!model || !node || node.label === this.node?.label) continue;
      const turnMs = Math.max(0, lastMove + MOVE_GAP_MS - performance.now());
      lastMove = performance.now() + turnMs;
      await wait(turnMs);
      if (this.canLeave(model)) await this.move(model, node);
    }
  }

  /** Not while a channel is being opened again, or the broker takes no messages. */
  private canLeave(model: ChannelModel): boolean {
    return !this.closing.signal.aborted && this.model === model && !this.blocked && this.usable.size === this.channels.size;
  }

  /** Replaces the connection. The next channels are all set up before they take over. The earlier ones stay open until their work is done. */
  private async move(model: ChannelModel, to: BrokerNode): Promise<void> {
    const from = this.node;
    let next: ChannelModel;
    try {
      next = await openAt(to, this.options, SHORT_CONNECT_TIMEOUT_MS, this.observer.log);
    } catch {
      // It is not back yet.
      return;
    }
    const channels = [...this.channels];
    const prepared = await Promise.all(channels.map((channel) => channel.prepare(next, to.label))).catch(() => []);
    const isComplete = prepared.length === this.channels.size && prepared.every(({ isReady }) => isReady);
    if (!isComplete || !this.canLeave(model) || isClosed(next)) {
      this.log(`not moved to ${to.label}, which is back: its channels could not be set up`);
      return destroySocket(next);
    }
    if (from) this.observer.connected(this.options.name, from.address, false, this.nodes.preferredAddress);
    this.adopt(next, to);
    this.retired.add(model);
    void within(DRAIN_TIMEOUT_MS, Promise.allSettled(prepared.map((channel) => channel.takeOver()))).then(async () => {
      await within(CLOSE_TIMEOUT_MS, (async () => model.close())());
      this.retired.delete(model);
      destroySocket(model);
    });
  }

  private setBlocked(blocked: boolean): void {
    if (blocked && !this.blocked) this.log('the broker is short of memory or disk and takes no messages');
    this.blocked = blocked;
    this.observer.blocked(this.options.name, blocked);
    this.emit('state', this.state);
  }

  private log(msg: string, more: { attempts?: number } = {}): void {
    this.observer.log('warn', { msg, connection: this.options.name, address: this.address, ...more });
  }
}
