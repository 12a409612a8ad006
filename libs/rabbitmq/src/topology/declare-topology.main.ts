import '@app/runtime/stop-while-starting';
import { brokerTlsFiles } from '@app/runtime/tls-settings';
import { ConfigError } from '@app/runtime/settings';
import { topologyConfig } from '../config';
import { declareTopology } from './declare-topology';
import { BINDINGS, EXCHANGES, QUEUES } from './topology';

const WAIT_MS = 60_000;

async function main(): Promise<void> {
  const config = topologyConfig();
  const upgraded = process.argv.includes('--upgraded');
  const onAway = (queues: readonly string[]) =>
    console.log(`These queues are on a broker node that is away, and keep their settings: ${queues.join(', ')}.`);
  const options = { tlsFiles: brokerTlsFiles(config), waitMs: WAIT_MS, upgraded, onAway };
  const left = await declareTopology(config.amqpUrl, options);
  console.log(`RabbitMQ has our ${EXCHANGES.length} exchanges, ${QUEUES.length} queues and ${BINDINGS.length} bindings.`);
  if (upgraded)
    console.log(
      left.length > 0 ? `Not empty yet: ${left.join(', ')}. Run it again in five minutes.` : 'The upgrade is finished.',
    );
}

/** Set-up waits for it before its next step. */
export const finished = main().catch((error: unknown) => {
  const { message, code } = error as NodeJS.ErrnoException;
  const reason = error instanceof ConfigError ? error.problems.join('; ') : message || code;
  console.error(`The topology could not be declared in the broker of AMQP_URL: ${reason}`);
  process.exitCode = 1;
});
