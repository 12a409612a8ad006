import type { Client } from 'pg';
import type { DatabaseServers, Endable } from './database-servers';
import { ConnectionPooler, READ_ONLY, ReadOnlyServer } from '../errors';
import { internalsOf } from './pg-internals';
import { TlsClient, type TlsClientConfig } from './tls-client';

/** Longest time for one server, in milliseconds: two have the time of one, so that a caller does not notice the first. */
const CONNECT_TIMEOUT_MS = { one: 2000, several: 1000 };

export interface WritableClientConfig extends TlsClientConfig {
  /** Replaces `connectionString`. */
  servers: DatabaseServers;
}

/**
 * A connection to the current server of {@link DatabaseServers}. It refuses a server that accepts no writes, which the driver cannot do, and a
 * connection pooler.
 */
export class WritableClient extends TlsClient implements Endable {
  protected readonly servers: DatabaseServers;
  protected readonly server: string;

  constructor(config: WritableClientConfig) {
    const { servers } = config;
    const connectionTimeoutMillis = servers.count > 1 ? CONNECT_TIMEOUT_MS.several : CONNECT_TIMEOUT_MS.one;
    super({ ...config, connectionString: servers.current, connectionTimeoutMillis });
    this.servers = servers;
    this.server = servers.current;
    // Without a listener a lost idle connection would end the process. The next statement reports the loss.
    this.on('error', () => undefined);
    this.once('end', () => servers.ended(this));
    internalsOf(this).connection.on('errorMessage', ({ code }) => {
      if (code === READ_ONLY) this.lost('the server accepts no writes any more', 'all');
    });
  }

  // The pool passes a callback.
  override connect(): Promise<Client>;
  override connect(callback: (error: Error) => void): void;
  override connect(callback?: (error: Error) => void): Promise<Client> | void {
    const connected = this.connectToWritable();
    if (!callback) return connected;
    connected.then(() => (callback as () => void)(), callback);
  }

  cutOff(reason: Error): void {
    internalsOf(this).connection.stream.destroy(reason);
  }

  get idle(): boolean {
    return internalsOf(this).readyForQuery;
  }

  /** Reports that this server is of no use any more, and ends connections to it. */
  protected lost(reason: string, which: 'all' | 'idle'): void {
    this.servers.lost(this.server, reason, which);
  }

  private async connectToWritable(): Promise<Client> {
    try {
      await super.connect();
      await this.check().catch((error: unknown) => {
        void this.end();
        throw error;
      });
    } catch (error) {
      this.servers.failed(this.server);
      throw isRefusedByPooler(error) ? new ConnectionPooler() : error;
    }
    this.servers.connected(this.server, this);
    return this;
  }

  private async check(): Promise<void> {
    // The limit of a transaction, which is one of each statement, too. Servers before PostgreSQL 17 do not know it.
    const { rows } = await this.query<{ pid: number; readOnly: string }>(
      `SELECT pg_backend_pid() AS pid, current_setting('transaction_read_only') AS "readOnly",
         CASE WHEN current_setting('transaction_timeout', true) <> '0' THEN set_config('transaction_timeout', '0', false) END`,
    );
    // A pooler hands out keys for cancel requests of its own, because the process behind a connection changes.
    if (rows[0]?.pid !== internalsOf(this).processID) throw new ConnectionPooler();
    if (rows[0]?.readOnly !== 'off') throw new ReadOnlyServer();
  }
}

/** PgBouncer refuses settings that it would have to apply to each server process again. */
const isRefusedByPooler = (error: unknown): boolean => /^unsupported startup parameter/.test((error as Error).message);
