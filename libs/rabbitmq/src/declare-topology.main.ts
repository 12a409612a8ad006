import { declareTopology } from './declare-topology';
import { BINDINGS, EXCHANGES, QUEUES } from './topology';

const WAIT_MS = 60_000;

async function main(): Promise<void> {
  // eslint-disable-next-line no-restricted-properties -- a program of two settings, run before any service has a configuration
  const { AMQP_URL, AMQP_CA_FILE } = process.env;
  if (!AMQP_URL) throw new Error('it is not set');
  await declareTopology(AMQP_URL, { caFile: AMQP_CA_FILE || undefined, waitMs: WAIT_MS });
  console.log(`RabbitMQ has ${EXCHANGES.length} exchanges, ${QUEUES.length} queues and ${BINDINGS.length} bindings of ours.`);
}

main().catch((error: unknown) => {
  const { message, code } = error as NodeJS.ErrnoException;
  console.error(`The topology could not be declared in the broker of AMQP_URL: ${message || code}`);
  process.exitCode = 1;
});
