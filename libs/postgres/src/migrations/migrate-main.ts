import { Logger } from '@nestjs/common';
import type { TlsFiles } from '@app/runtime/settings/tls-files';
import type { ToolOutput } from '@app/runtime/tool-output';
import { connectionPooler } from '../errors';
import { migrate, type MigrationSettings } from './migrate';

export interface MigrationConfig {
  adminUrl: string;
  serviceUrl?: string;
  tlsFiles?: TlsFiles;
}

/**
 * Main function of a service's migrate program. It migrates, prints the migrations that ran in one line, and sets the exit code. An error line
 * never contains the connection string.
 *
 * @returns undefined when it failed
 */
export async function migrateAndReport(
  database: Pick<MigrationSettings, 'schema' | 'migrations' | 'undeletable'>,
  config: MigrationConfig,
  output: ToolOutput,
): Promise<{ schema: string; migrations: string[] } | undefined> {
  const { schema, migrations, undeletable } = database;
  // As for other tools: stdout belongs to the result.
  Logger.overrideLogger(false);
  try {
    const onWait = (reason: string) => output.progress(`schema ${schema}: waiting, because ${reason}`);
    const ran = await migrate({ ...config, schema, migrations, undeletable, onWait });
    output.progress(`schema ${schema}: ${ran.length > 0 ? `ran ${ran.join(', ')}` : 'is current'}`);
    return { schema, migrations: ran };
  } catch (error) {
    output.failure('setup', error, (one) => `schema ${schema}: the migration failed: ${problemOf(one)}`);
    return undefined;
  }
}

function problemOf(error: unknown): string {
  const pooler = connectionPooler(error);
  if (pooler) return `the server in DATABASE_URL ${pooler.message}`;
  const { code, message } = error as { code?: string; message: string };
  return `${code ? `${code} ` : ''}${message || 'the database of DATABASE_URL is unreachable'}`;
}
