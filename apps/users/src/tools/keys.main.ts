import '@app/runtime/stop-while-starting';
import 'reflect-metadata';
import { createDataSource } from '@app/postgres/data-source';
import { databaseProblem, onDatabase } from '@app/postgres/tool';
import { reportToolFailure } from '@app/runtime/command-line';
import { configOrExit } from '@app/runtime/run-service';
import { databaseTlsFiles } from '@app/runtime/tls-settings';
import { keysConfig } from '../config';
import { ApiKeysRepository } from '@app/api-keys/api-keys.repository';
import { DATABASE } from '../db/schema';
import { HELP, KeyError, readCommandLine, type Output } from './key-commands';

async function main(args: string[]): Promise<void> {
  const { json, run } = readCommandLine(args);
  if (!run) return print(HELP.trimEnd());
  const output = await onKeys(run);
  print(json ? JSON.stringify(output.data) : output.lines.join('\n'));
}

async function onKeys(run: (keys: ApiKeysRepository) => Promise<Output>): Promise<Output> {
  const config = configOrExit(keysConfig);
  const dataSource = createDataSource({
    name: 'users keys',
    url: config.databaseUrl,
    tlsFiles: databaseTlsFiles(config),
    ...DATABASE,
    poolSize: 1,
  });
  return onDatabase(dataSource, () => run(new ApiKeysRepository(dataSource)));
}

const print = (text: string): void => console.log(text);

main(process.argv.slice(2)).catch((error: unknown) => {
  reportToolFailure('keys', error, (one) => (one instanceof KeyError ? one.message : databaseProblem(one)));
});
