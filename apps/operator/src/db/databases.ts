import { Logger } from '@nestjs/common';
import { setTimeout as sleep } from 'node:timers/promises';
import type { DataSource } from 'typeorm';
import { connectWhenReady, databaseObstacle } from '@app/postgres/connect';
import { createDataSource } from '@app/postgres/connections/data-source';
import { migrate } from '@app/postgres/migrations/migrate';
import { reasonOf } from '@app/postgres/errors';
import type { TlsFiles } from '@app/runtime/settings/tls-files';
import { DATABASE } from './schema';

const RETRY_MS = 5000;
const POOL_SIZE = 2;

/** The schema of this page, which it migrates itself, and that of the users service, for its API keys. */
export class Databases {
  readonly own: DataSource;
  readonly users: DataSource;
  private obstacle: string | undefined = 'is not connected yet';

  constructor(
    private readonly url: string,
    private readonly tlsFiles: TlsFiles,
  ) {
    const shared = { url, tlsFiles, poolSize: POOL_SIZE };
    this.own = createDataSource({ name: 'operator', ...shared, ...DATABASE });
    this.users = createDataSource({ name: 'operator keys', ...shared, schema: 'users', migrations: [] });
  }

  /** Connects, and tries again until it can: the page is there to look at a system whose database is away. Never rejects. */
  async connect(stopping: AbortSignal): Promise<void> {
    const logger = new Logger('Databases');
    while (!stopping.aborted) {
      try {
        // Not by set-up: it has no business with a schema that most systems do not need, and this process has the same account.
        await migrate({ adminUrl: this.url, tlsFiles: this.tlsFiles, ...DATABASE });
        if (!(await connectWhenReady(this.own, stopping))) return;
        if (!this.users.isInitialized) await this.users.initialize();
        this.obstacle = undefined;
        return;
      } catch (error) {
        this.obstacle = `cannot be used (${reasonOf(error)})`;
        logger.warn(`the database ${this.obstacle}`);
        await sleep(RETRY_MS, undefined, { signal: stopping }).catch(() => undefined);
      }
    }
  }

  /** Readiness. @returns undefined, or the reason */
  check = async (): Promise<string | undefined> => this.obstacle ?? (await databaseObstacle(this.own));

  async close(): Promise<void> {
    for (const one of [this.own, this.users]) if (one.isInitialized) await one.destroy();
  }
}
