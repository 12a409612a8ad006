import type { Client } from 'pg';
import { eventually } from '@app/testing/eventually';

/** Another transaction that holds locks. */
export class Rival {
  constructor(private readonly client: Client) {}

  async query(sql: string, parameters: unknown[] = []): Promise<void> {
    await this.client.query(sql, parameters);
  }

  /** Waits until `count` server sessions wait for this transaction, directly or indirectly. @returns their process ids */
  async waiting(count: number): Promise<number[]> {
    const found = async () => {
      // Within a transaction the view is a snapshot of its first read.
      await this.client.query('SELECT pg_stat_clear_snapshot()');
      const { rows } = await this.client.query<{ pid: number }>(
        `WITH RECURSIVE waiting AS (
           SELECT pg_backend_pid() AS pid
           UNION
           SELECT activity.pid FROM pg_stat_activity activity JOIN waiting ON waiting.pid = ANY (pg_blocking_pids(activity.pid))
           WHERE activity.datname = current_database()
         )
         SELECT pid FROM waiting WHERE pid <> pg_backend_pid()`,
      );
      return rows.length >= count && rows.map(({ pid }) => pid);
    };
    return (await eventually(found)) as number[];
  }
}
