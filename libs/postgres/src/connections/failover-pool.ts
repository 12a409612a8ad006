import { Pool, type PoolClient, type PoolConfig } from 'pg';
import type { DatabaseServers } from './database-servers';
import { pools } from '../metrics';

type Done = (release?: Error | boolean) => void;
type Callback = (error: Error | undefined, client: PoolClient | undefined, done: Done) => void;

/** A pool whose connections lead to the server that accepts writes: when one cannot be opened, the next server is tried. */
export class FailoverPool extends Pool {
  private readonly servers: DatabaseServers;

  /** @param config `Client` is a {@link WritableClient} */
  constructor(config: PoolConfig & { servers: DatabaseServers }) {
    super(config);
    this.servers = config.servers;
    pools.add(this);
  }

  override end(): Promise<void>;
  override end(callback: () => void): void;
  override end(callback?: () => void): Promise<void> | void {
    pools.delete(this);
    return callback ? super.end(callback) : super.end();
  }

  override connect(): Promise<PoolClient>;
  override connect(callback: Callback): void;
  override connect(callback?: Callback): Promise<PoolClient> | void {
    const connected = this.servers.first(() => super.connect());
    if (!callback) return connected;
    connected.then(
      (client) => callback(undefined, client, (release) => client.release(release)),
      (error: unknown) => callback(error as Error, undefined, () => undefined),
    );
  }
}
