import '@app/runtime/stop-while-starting';
import { ConfigError } from '@app/runtime/settings/settings';
import { brokerTlsFiles } from '@app/runtime/settings/tls-settings';
import { ToolOutput } from '@app/runtime/tool-output';
import { boundEverybody } from './limits';
import { AccountsConfig } from '@app/rabbitmq/config';
import { declareAccounts } from './declare-accounts';
import { ManagementApi } from '../management-api';

const WAIT_MS = 60_000;
const output = new ToolOutput();

async function main() {
  const config = new AccountsConfig();
  const { amqpUrl, managementUrl, made } = config;
  if (!managementUrl) {
    output.progress(
      'RabbitMQ: accounts and their limits stay unchanged. Set RABBITMQ_MANAGEMENT_URL to have them created and limited.',
    );
    return { accounts: [], limited: null };
  }
  if (Object.keys(made).length === 0)
    output.progress('RabbitMQ: no service has an account of its own in this configuration, so none is created.');
  const tlsFiles = brokerTlsFiles(config);
  const onWait = (reason: string) => output.progress(`RabbitMQ: waiting, because ${reason}.`);
  const patientApi = () =>
    new ManagementApi(managementUrl, amqpUrl, { tlsFiles, waitUntil: performance.now() + WAIT_MS, onWait });
  const declared = await declareAccounts(patientApi(), made);
  if (declared.length > 0)
    output.progress(`RabbitMQ has the accounts ${declared.join(', ')}, each with the rights that it needs.`);
  const others = await boundEverybody(patientApi());
  output.progress(`RabbitMQ limits reply queues and the ${others} account(s) of other services.`);
  return { accounts: declared, limited: others };
}

/** Set-up waits for it before its next step. */
export const finished = main().catch((error: unknown) => {
  const reason = error instanceof ConfigError ? error.problems.join('; ') : (error as Error).message;
  output.failure('setup', error, () => `The accounts could not be created: ${reason}`);
});
