import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';

export type Direction = 'toServer' | 'toClient';

/** Verdict about bytes: `cut` and `reset` end the connection before them; `hold` keeps them and all later bytes until the link heals. */
export type Verdict = 'pass' | 'cut' | 'reset' | 'hold';

/** Faults of one direction of a link. */
export interface Weather {
  /** Delay in milliseconds, and its maximum deviation in both directions. */
  latencyMs: number;
  jitterMs: number;
  /** Most bytes in one packet; 0: unchanged. */
  sliceBytes: number;
  /** Nothing is forwarded, not even the end of a connection; the sockets stay open. */
  stalled: boolean;
}

/** Inspects bytes before they are forwarded. Both directions of a connection get the same link object. */
export type Inspector = (bytes: Buffer, direction: Direction, link: Link) => Verdict;

/** First bytes of the AMQP method basic.ack on the wire: class and number. */
export const BASIC_ACK = Buffer.from([0, 60, 0, 80]);
/** The same of channel.close and channel.close-ok. */
export const CHANNEL_CLOSE = Buffer.from([0, 20, 0, 40]);
export const CHANNEL_CLOSE_OK = Buffer.from([0, 20, 0, 41]);

const CLEAR: Weather = { latencyMs: 0, jitterMs: 0, sliceBytes: 0, stalled: false };

/** A TCP proxy that simulates network faults. Every fault ends with {@link heal}. */
export class FaultProxy {
  readonly weather: Record<Direction, Weather> = { toServer: { ...CLEAR }, toClient: { ...CLEAR } };
  /** Refuses connections, like a host without the service. */
  refusing = false;
  inspector?: Inspector;
  private readonly links = new Set<Link>();

  private constructor(
    private readonly server: Server,
    readonly target: { host: string; port: number },
    readonly random: () => number,
  ) {
    server.on('connection', (client) => this.accept(client));
  }

  /** To the server of a URL with one host. */
  static to(url: string, random?: () => number): Promise<FaultProxy> {
    const { hostname: host, port } = new URL(url);
    return FaultProxy.start({ host, port: Number(port) }, random);
  }

  /** @param random returns a number between 0 and 1, for the jitter */
  static async start(target: { host: string; port: number }, random: () => number = Math.random): Promise<FaultProxy> {
    const server = createServer({ allowHalfOpen: true, noDelay: true });
    const proxy = new FaultProxy(server, target, random);
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return proxy;
  }

  /** The given URL, through this proxy. */
  through(url: string): string {
    const changed = new URL(url);
    changed.hostname = '127.0.0.1';
    changed.port = String((this.server.address() as AddressInfo).port);
    return changed.href;
  }

  get openLinks(): number {
    return this.links.size;
  }

  /** @param directions default: both */
  change(weather: Partial<Weather>, ...directions: Direction[]): void {
    for (const direction of directions.length > 0 ? directions : (['toServer', 'toClient'] as const))
      Object.assign(this.weather[direction], weather);
  }

  /** Ends all connections. @returns their number */
  cut(how: 'cut' | 'reset' = 'cut'): number {
    const ended = this.links.size;
    for (const link of this.links) link.end(how);
    return ended;
  }

  /** A black hole: sockets stay open and nothing passes. New connections are accepted, but not forwarded. */
  stall(...directions: Direction[]): void {
    this.change({ stalled: true }, ...directions);
  }

  /**
   * Ends all faults of the link.
   *
   * @param stalledLinks `resume`: held bytes arrive now; `lose`: stalled connections stay dead, as after a router has forgotten them
   */
  heal(stalledLinks: 'resume' | 'lose' = 'resume'): void {
    if (stalledLinks === 'lose') for (const link of this.links) link.lose();
    this.change(CLEAR);
    this.refusing = false;
    this.inspector = undefined;
    for (const link of this.links) link.flush();
  }

  async close(): Promise<void> {
    this.cut();
    this.server.close();
    await once(this.server, 'close');
  }

  private accept(client: Socket): void {
    if (this.refusing) return void client.resetAndDestroy();
    const link = new Link(this, client, connect({ ...this.target, allowHalfOpen: true, noDelay: true }));
    this.links.add(link);
    link.onEnd = () => this.links.delete(link);
  }
}

/** One proxied connection. */
export class Link {
  /** Notes of inspectors. */
  note?: string;
  onEnd?: () => void;
  private readonly pipes: Pipe[];
  private ended = false;

  constructor(
    readonly proxy: FaultProxy,
    private readonly client: Socket,
    private readonly server: Socket,
  ) {
    this.pipes = [new Pipe(this, 'toServer', client, server), new Pipe(this, 'toClient', server, client)];
    for (const socket of [client, server]) {
      socket.on('error', () => undefined);
      socket.on('close', () => this.onSocketClosed());
    }
  }

  flush(): void {
    for (const pipe of this.pipes) pipe.flush();
    if (this.client.destroyed || this.server.destroyed) this.onSocketClosed();
  }

  /** The link is stalled for ever. */
  lose(): void {
    for (const pipe of this.pipes) pipe.lost ||= pipe.isStalled;
  }

  end(how: 'cut' | 'reset'): void {
    if (this.ended) return;
    this.ended = true;
    for (const pipe of this.pipes) pipe.stop();
    for (const socket of [this.client, this.server]) {
      // A reset fails while the end of what was written is on its way. The handle then stays, and Node waits for it at its exit, without an end.
      if (how === 'reset' && !socket.connecting && !socket.writableEnded) socket.resetAndDestroy();
      else socket.destroy();
    }
    this.onEnd?.();
  }

  private onSocketClosed(): void {
    // In a black hole the other side does not see the end.
    const gone = this.client.destroyed && this.server.destroyed;
    if (gone || this.pipes.every((pipe) => !pipe.isStalled && pipe.isEmpty)) this.end('cut');
  }
}

/** One direction of a link. */
class Pipe {
  lost = false;
  private readonly queue: { bytes: Buffer | null; dueAt: number }[] = [];
  private timer?: NodeJS.Timeout;
  private held = false;
  private stopped = false;
  private latestDue = 0;

  constructor(
    private readonly link: Link,
    private readonly direction: Direction,
    private readonly from: Socket,
    private readonly to: Socket,
  ) {
    from.on('data', (bytes: Buffer) => this.take(bytes));
    from.on('end', () => {
      this.push(null);
      this.flush();
    });
    to.on('drain', () => this.flush());
  }

  get isStalled(): boolean {
    return this.lost || this.held || this.weather.stalled;
  }

  get isEmpty(): boolean {
    return this.queue.length === 0;
  }

  private get weather(): Weather {
    return this.link.proxy.weather[this.direction];
  }

  stop(): void {
    this.stopped = true;
    clearTimeout(this.timer);
    this.queue.length = 0;
  }

  /** Sends the bytes that are due, in order. */
  flush(): void {
    clearTimeout(this.timer);
    if (!this.link.proxy.inspector) this.held = false;
    while (!this.stopped && !this.isStalled && !this.to.writableNeedDrain) {
      const [next] = this.queue;
      if (!next) break;
      const wait = next.dueAt - performance.now();
      if (wait > 0) {
        this.timer = setTimeout(() => this.flush(), wait);
        return;
      }
      this.queue.shift();
      if (next.bytes) this.to.write(next.bytes);
      else this.to.end();
      if (this.weather.sliceBytes > 0) {
        // Slices written in one turn of the event loop would be joined to one packet again.
        this.timer = setTimeout(() => this.flush(), 1);
        break;
      }
    }
    if (this.queue.length > 1000 || this.isStalled) this.from.pause();
    else this.from.resume();
  }

  private take(bytes: Buffer): void {
    const verdict = this.link.proxy.inspector?.(bytes, this.direction, this.link) ?? 'pass';
    if (verdict === 'cut' || verdict === 'reset') return this.link.end(verdict);
    if (verdict === 'hold') this.held = true;
    const { sliceBytes } = this.weather;
    const size = sliceBytes > 0 ? sliceBytes : bytes.length;
    for (let at = 0; at < bytes.length; at += size) this.push(bytes.subarray(at, at + size));
    this.flush();
  }

  private push(bytes: Buffer | null): void {
    const { latencyMs, jitterMs } = this.weather;
    const delay = latencyMs > 0 ? Math.max(0, latencyMs + (this.link.proxy.random() * 2 - 1) * jitterMs) : 0;
    this.latestDue = Math.max(this.latestDue, performance.now() + delay);
    this.queue.push({ bytes, dueAt: this.latestDue });
  }
}
