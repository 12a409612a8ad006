import { Logger } from '@nestjs/common';
import { Pool, type PoolClient, type PoolConfig } from 'pg';
import { hasNoRoom } from '../errors';
import { pools } from '../metrics';
import type { DatabaseServers } from './database-servers';

type Done = (release?: Error | boolean) => void;
type Callback = (error: Error | undefined, client: PoolClient | undefined, done: Done) => void;

/** How long no further connection is opened to a server that had no room for one, in milliseconds. */
const NO_ROOM_MS = 10_000;

/**
 * A pool whose connections lead to the server that accepts writes: when one cannot be opened, the next server is tried. A server without room for one
 * more connection is not away: then a statement waits for one of those that are open.
 */
export class FailoverPool extends Pool {
  private readonly logger = new Logger('Postgres');
  private readonly servers: DatabaseServers;
  private readonly most: number;
  private readonly opened = new Set<PoolClient>();
  private timer?: NodeJS.Timeout;

  /** @param config `Client` is a {@link WritableClient} */
  constructor(config: PoolConfig & { servers: DatabaseServers }) {
    super(config);
    this.servers = config.servers;
    this.most = this.options.max;
    this.on('connect', (client) => this.opened.add(client));
    this.on('remove', (client) => this.opened.delete(client));
    pools.add(this);
  }

  override end(): Promise<void>;
  override end(callback: () => void): void;
  override end(callback?: () => void): Promise<void> | void {
    pools.delete(this);
    clearTimeout(this.timer);
    return callback ? super.end(callback) : super.end();
  }

  override connect(): Promise<PoolClient>;
  override connect(callback: Callback): void;
  override connect(callback?: Callback): Promise<PoolClient> | void {
    // With those alone that listen there is nothing to wait for.
    if (this.options.max < this.most && this.isNoneForStatements) this.options.max = this.most;
    const connected = this.servers.first(() => super.connect());
    if (!callback) return connected.catch((error: unknown) => this.openOne(error));
    const pass = (client: PoolClient) => callback(undefined, client, (release) => client.release(release));
    const fail = (error: unknown) => callback(error as Error, undefined, () => undefined);
    connected.then(pass, (error: unknown) => this.openOne(error).then(pass, fail));
  }

  /** Whether no connection is open, or one that listens for NOTIFY alone, which is never free. Then a database without room is away. */
  private get isNoneForStatements(): boolean {
    return [...this.opened].every((client) => client.listenerCount('notification') > 0);
  }

  /**
   * Waits for one of the open connections, as long as for any connection.
   *
   * @throws the error unless it is the want of room; that of a full pool when none comes
   */
  private async openOne(error: unknown): Promise<PoolClient> {
    if (!hasNoRoom(error) || this.isNoneForStatements) throw error;
    const { size: open } = this.opened;
    if (!this.timer) this.logger.warn({ msg: 'the database has no room for more connections', open, of: this.most });
    this.options.max = Math.min(this.most, open);
    this.timer ??= setTimeout(() => {
      this.timer = undefined;
      this.options.max = this.most;
    }, NO_ROOM_MS).unref();
    return super.connect();
  }
}
