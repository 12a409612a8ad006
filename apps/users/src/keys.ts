import 'reflect-metadata';
import { migrationObstacle } from '@app/postgres/connect';
import { createDataSource } from '@app/postgres/data-source';
import { configOrExit } from '@app/runtime/run-service';
import { keysConfig } from './config';
import { ApiKeysRepository } from './db/api-keys.repository';
import { ENTITIES, MIGRATIONS, SCHEMA } from './db/schema';
import { HELP, KeyError, readCommandLine, UsageError, type Output } from './key-commands';

async function main(args: string[]): Promise<void> {
  const { json, run } = readCommandLine(args);
  if (!run) return print(HELP.trimEnd());
  const output = await onDatabase(run);
  print(json ? JSON.stringify(output.data) : output.lines.join('\n'));
}

async function onDatabase(run: (keys: ApiKeysRepository) => Promise<Output>): Promise<Output> {
  const config = configOrExit(keysConfig);
  const dataSource = createDataSource({
    name: 'users keys',
    url: config.databaseUrl,
    caFile: config.databaseCaFile,
    schema: SCHEMA,
    entities: ENTITIES,
    migrations: MIGRATIONS,
    poolSize: 1,
  });
  try {
    await dataSource.initialize();
    const obstacle = await migrationObstacle(dataSource);
    if (obstacle) throw new KeyError(obstacle);
    return await run(new ApiKeysRepository(dataSource));
  } finally {
    if (dataSource.isInitialized) await dataSource.destroy();
  }
}

const print = (text: string): void => console.log(text);

main(process.argv.slice(2)).catch((error: unknown) => {
  const usage = error instanceof UsageError;
  const { code, message } = error as { code?: string; message: string };
  // A refused connection has a code and no message; a message of the driver may name users and databases.
  const reason = usage || error instanceof KeyError ? message : `The database cannot be used (${code ?? (error as Error).name}).`;
  console.error(usage ? `${reason} See npm run keys -- --help` : reason);
  process.exitCode = usage ? 2 : 1;
});
