import '@app/runtime/stop-while-starting';
import { parseArgs } from 'node:util';
import { OtherAccountsConfig } from '@app/rabbitmq/config';
import { ConfigError } from '@app/runtime/settings/settings';
import { brokerTlsFiles } from '@app/runtime/settings/tls-settings';
import { ToolOutput } from '@app/runtime/tool-output';
import { ManagementApi } from '../management-api';

/** As in a grant: every account. */
const ANYBODY = '*';

const output = new ToolOutput();

/** After `keys grant`: says when the broker has no such account. The grant stands, because an account may be created later. */
async function main(publisher: unknown): Promise<void> {
  if (typeof publisher !== 'string' || publisher === ANYBODY) return;
  const config = new OtherAccountsConfig();
  const api = new ManagementApi(config.managementUrl ?? '', config.amqpUrl, { tlsFiles: brokerTlsFiles(config) });
  if (await api.get(`users/${encodeURIComponent(publisher)}`)) return;
  output.note(`The broker has no account "${publisher}" yet. Look at the name, or create it: npm run accounts -- --help`);
}

const { values } = parseArgs({ options: { publisher: { type: 'string' } }, strict: false });
main(values.publisher).catch((error: unknown) => {
  const reason = error instanceof ConfigError ? error.problems.join('; ') : (error as Error).message;
  output.note(`The broker could not be asked whether it has the account: ${reason}`);
});
