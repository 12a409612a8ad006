import '@app/runtime/stop-while-starting';
import 'reflect-metadata';
import { createDataSource } from '@app/postgres/connections/data-source';
import { databaseProblem, onDatabase } from '@app/postgres/tool';
import { databaseTlsFiles } from '@app/runtime/settings/tls-settings';
import { ToolOutput } from '@app/runtime/tool-output';
import { KeysConfig } from '../config';
import { ApiKeysRepository } from '@app/api-keys/api-keys.repository';
import { DATABASE } from '../db/schema';
import { HELP, KeyError, readCommandLine, type Output } from './key-commands';

const output = new ToolOutput();

async function main(args: string[]): Promise<void> {
  const { run } = readCommandLine(args);
  if (!run) return console.log(HELP.trimEnd());
  const { data, lines } = await onKeys(run);
  output.result(data, lines);
}

async function onKeys(run: (keys: ApiKeysRepository) => Promise<Output>): Promise<Output> {
  const config = new KeysConfig(process.env);
  const dataSource = createDataSource({
    name: 'users keys',
    url: config.databaseUrl,
    tlsFiles: databaseTlsFiles(config),
    ...DATABASE,
    poolSize: 1,
  });
  return onDatabase(dataSource, () => run(new ApiKeysRepository(dataSource)));
}

main(process.argv.slice(2)).catch((error: unknown) => {
  output.failure('keys', error, (one) => (one instanceof KeyError ? one.message : databaseProblem(one)));
});
