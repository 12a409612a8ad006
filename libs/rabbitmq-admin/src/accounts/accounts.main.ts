import '@app/runtime/stop-while-starting';
import { ConfigError } from '@app/runtime/settings/settings';
import { brokerTlsFiles } from '@app/runtime/settings/tls-settings';
import { ToolOutput } from '@app/runtime/tool-output';
import { HELP, readCommandLine } from './command-line';
import { run } from './run';
import { OtherAccountsConfig } from '@app/rabbitmq/config';
import { ManagementApi } from '../management-api';

const output = new ToolOutput();

async function main(args: string[]): Promise<void> {
  const invocation = readCommandLine(args);
  if (!invocation) return console.log(HELP.trimEnd());
  const config = new OtherAccountsConfig();
  const { amqpUrl, managementUrl } = config;
  if (!managementUrl) throw new ConfigError(['RABBITMQ_MANAGEMENT_URL is not set']);
  const api = new ManagementApi(managementUrl, amqpUrl, { tlsFiles: brokerTlsFiles(config) });
  output.result(await run(api, amqpUrl, invocation));
}

main(process.argv.slice(2)).catch((error: unknown) => {
  output.failure('accounts', error, (one) => (one instanceof ConfigError ? one.problems.join('\n') : (one as Error).message));
});
