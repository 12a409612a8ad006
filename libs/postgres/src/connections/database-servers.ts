import { Logger } from '@nestjs/common';
import { databaseServers } from '@app/runtime/settings/database-url';
import { NoServer, reasonOf } from '../errors';
import { connectFailures, serverInUse } from '../metrics';

/** A connection that can be ended at once. */
export interface Endable {
  /** Whether no statement runs. */
  readonly idle: boolean;
  /** Ends the connection. A running statement fails with `reason`. */
  cutOff(reason: Error): void;
}

/**
 * The servers of one connection URL, in turn: the one that accepted writes last is tried first. The connections of one pool share an instance, so
 * that they all follow the first one that fails over.
 */
export class DatabaseServers {
  private readonly logger = new Logger('Postgres');
  private readonly urls: readonly string[];
  private readonly open = new Map<Endable, string>();
  private readonly probes = new Map<string, Promise<boolean>>();
  private position = 0;
  private used?: number;

  /** @param url connection string with one or several servers, see {@link databaseServers} */
  constructor(url: string) {
    this.urls = databaseServers(url);
    // A rate misses the first event of a counter that appears with it.
    this.urls.forEach((_, position) => connectFailures.inc({ server: position + 1 }, 0));
  }

  get count(): number {
    return this.urls.length;
  }

  /** Connection string of the server to try now. */
  get current(): string {
    return this.urls[this.position] ?? '';
  }

  /**
   * Calls `connect` until it succeeds, at most once for each server.
   *
   * @throws NoServer after the last one; with one server the error of `connect`
   */
  async first<T>(connect: () => Promise<T>): Promise<T> {
    const errors = new Map<number, unknown>();
    for (let tries = 0; tries < this.count; tries++) {
      const { position } = this;
      try {
        return await connect();
      } catch (error) {
        errors.set(position, error);
        // A full pool is not a matter of the server.
        if (this.count === 1 || position === this.position) throw error;
      }
    }
    throw new NoServer(
      [...errors].sort(([a], [b]) => a - b).map(([position, error]) => `server ${position + 1}: ${reasonOf(error)}`),
      [...errors.values()],
    );
  }

  /** Reports a connection to a server that accepts writes. */
  connected(url: string, connection: Endable): void {
    this.open.set(connection, url);
    const position = this.urls.indexOf(url);
    if (this.used !== undefined && this.used !== position)
      this.logger.warn({ msg: 'another server is used', server: position + 1, of: this.count });
    this.used = this.position = position;
    serverInUse.set(position + 1);
  }

  ended(connection: Endable): void {
    this.open.delete(connection);
  }

  /** Reports that a connection to this server failed. The next one is tried, unless another connection has moved on already. */
  failed(url: string): void {
    const position = this.urls.indexOf(url);
    connectFailures.inc({ server: position + 1 });
    if (position === this.position) this.position = (position + 1) % this.count;
  }

  /** Asks a server that has been silent whether it answers. Connections that ask at the same time share one probe. */
  async answers(url: string, probe: () => Promise<boolean>): Promise<boolean> {
    let running = this.probes.get(url);
    if (!running) {
      running = probe().finally(() => this.probes.delete(url));
      this.probes.set(url, running);
    }
    const answered = await running;
    if (answered)
      this.logger.warn({ msg: 'a statement has no answer, and its server works', server: this.urls.indexOf(url) + 1 });
    return answered;
  }

  /**
   * Ends connections to a server that has become read-only or silent: a pool would hand out each of them once more.
   *
   * @param which `idle` when running statements may still succeed
   */
  lost(url: string, reason: string, which: 'all' | 'idle'): void {
    this.failed(url);
    const connections = [...this.open].filter(([{ idle }, one]) => one === url && (idle || which === 'all'));
    this.logger.warn({
      msg: 'a server is left',
      reason,
      server: this.urls.indexOf(url) + 1,
      of: this.count,
      connections: connections.length,
    });
    for (const [connection] of connections) connection.cutOff(new Error(`Connection terminated: ${reason}`));
  }
}
