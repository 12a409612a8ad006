import '@app/runtime/stop-while-starting';
import 'reflect-metadata';
import { databaseProblem, onDatabase } from '@app/postgres/tool';
import { ToolOutput } from '@app/runtime/tool-output';
import { KeysConfig } from '../config';
import { ApiKeysRepository } from '@app/api-keys/api-keys.repository';
import { DATABASE } from '../db/schema';
import { HELP, KeyError, readCommandLine } from './key-commands';

const output = new ToolOutput();

async function main(args: string[]): Promise<void> {
  const run = readCommandLine(args);
  if (!run) return console.log(HELP.trimEnd());
  const settings = { name: 'users keys', config: new KeysConfig(), ...DATABASE };
  output.result(await onDatabase(settings, (dataSource) => run(new ApiKeysRepository(dataSource))));
}

main(process.argv.slice(2)).catch((error: unknown) => {
  output.failure('keys', error, (one) => (one instanceof KeyError ? one.message : databaseProblem(one)));
});
