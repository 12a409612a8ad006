import { Pool } from 'pg';
import { eventually } from '@app/testing/eventually';
import { PrivateServer } from '@app/testing/system/private-server';

/** Time for a standby to copy its primary and to follow it. */
const FOLLOW_MS = 30_000;

/** A PostgreSQL primary with a synchronous standby, or without one. */
export class DatabasePair {
  standby?: PrivateServer;
  /** Direct connections to the primary. */
  sql: Pool;

  private constructor(
    public primary: PrivateServer,
    private readonly options: readonly string[],
  ) {
    this.sql = this.connect();
  }

  static async start({ standby, fsync }: { standby: boolean; fsync: boolean }): Promise<DatabasePair> {
    const options = fsync ? ['--fsync'] : [];
    const pair = new DatabasePair(await PrivateServer.start('postgres', ...options), options);
    if (standby) {
      try {
        await pair.addStandby();
      } catch (error) {
        await pair.remove();
        throw error;
      }
    }
    return pair;
  }

  /** URL of both servers, in one list. */
  get url(): string {
    const hosts = [this.primary, this.standby ?? []].flat().map(({ url }) => new URL(url).host);
    return this.primary.url.replace(/@[^/]+/, `@${hosts.join(',')}`);
  }

  /** Makes a standby of the primary. From then on a commit waits until the standby has it on disk. */
  async addStandby(): Promise<void> {
    this.standby = await PrivateServer.start('postgres', ...this.options, '--standby-of', this.primary.url);
    await this.synchronous(true);
    await this.untilFollowed();
  }

  /** Waits until the standby is in step. */
  async untilFollowed(): Promise<void> {
    await this.untilReplication(`sync_state = 'sync' AND state = 'streaming'`);
  }

  /**
   * Restarts the primary, and then the standby. The standby is not synchronous while it is away, so that no commit waits for it.
   *
   * @returns for how many milliseconds the primary was away
   */
  async restart(): Promise<number> {
    const from = performance.now();
    await this.primary.order('stop');
    await this.primary.order('start');
    const awayMs = performance.now() - from;
    if (!this.standby) return awayMs;
    await this.untilFollowed();
    await this.synchronous(false);
    await this.standby.order('stop');
    await this.standby.order('start');
    await this.untilReplication(`state = 'streaming'`);
    await this.synchronous(true);
    await this.untilFollowed();
    return awayMs;
  }

  private async synchronous(on: boolean): Promise<void> {
    await this.sql.query(`ALTER SYSTEM SET synchronous_standby_names = '${on ? '*' : ''}'`);
    await this.sql.query('SELECT pg_reload_conf()');
  }

  private async untilReplication(condition: string): Promise<void> {
    const isSo = async () => (await this.sql.query(`SELECT 1 FROM pg_stat_replication WHERE ${condition}`)).rowCount;
    await eventually(isSo, FOLLOW_MS, 50);
  }

  /** Ends the primary like a power cut, and makes the standby the primary. There is no standby then. @returns when it was promoted */
  async failOver(): Promise<number> {
    const { standby } = this;
    if (!standby) throw new Error('there is no standby');
    await this.primary.order('kill');
    await this.sql.end();
    const failed = this.primary;
    this.primary = standby;
    this.standby = undefined;
    this.sql = this.connect();
    await this.sql.query('SELECT pg_promote()');
    const promotedAt = performance.now();
    await failed.remove();
    return promotedAt;
  }

  async remove(): Promise<void> {
    await this.sql.end();
    await Promise.all([this.primary.remove(), this.standby?.remove()]);
  }

  private connect(): Pool {
    const pool = new Pool({ connectionString: this.primary.url, max: 2, connectionTimeoutMillis: 2000 });
    // Without a listener a lost idle connection would end the process.
    pool.on('error', () => undefined);
    return pool;
  }
}
