import '@app/runtime/stop-while-starting';
import { readOptions, UsageError } from '@app/runtime/command-line';
import { brokerTlsFiles } from '@app/runtime/settings/tls-settings';
import { ConfigError } from '@app/runtime/settings/settings';
import { ToolOutput } from '@app/runtime/tool-output';
import { TopologyConfig } from '../config';
import { declareTopology } from './declare-topology';
import { BINDINGS, EXCHANGES, QUEUES } from './topology';

const WAIT_MS = 60_000;
const output = new ToolOutput();

async function main() {
  // Words are the steps of npm run setup, which has the help.
  const read = readOptions('setup', { upgraded: 'switch', json: 'switch' } as const, process.argv.slice(2));
  if (!read) throw new UsageError('This is a step of npm run setup.');
  const { upgraded = false } = read.values;
  const config = new TopologyConfig();
  const away: string[] = [];
  const onAway = (queues: readonly string[]) => {
    away.push(...queues);
    output.progress(`These queues are on a broker node that is away, and keep their settings: ${queues.join(', ')}.`);
  };
  const onWait = (reason: string) => output.progress(`RabbitMQ: waiting, because it cannot be used (${reason}).`);
  const options = { tlsFiles: brokerTlsFiles(config), waitMs: WAIT_MS, upgraded, onWait, onAway };
  const left = await declareTopology(config.amqpUrl, options);
  output.progress(`RabbitMQ has our ${EXCHANGES.length} exchanges, ${QUEUES.length} queues and ${BINDINGS.length} bindings.`);
  if (upgraded)
    output.progress(
      left.length > 0 ? `Not empty yet: ${left.join(', ')}. Run it again in five minutes.` : 'The upgrade is finished.',
    );
  const counts = { exchanges: EXCHANGES.length, queues: QUEUES.length, bindings: BINDINGS.length };
  return { ...counts, away, notEmpty: left };
}

/** Set-up waits for it before its next step. */
export const finished = main().catch((error: unknown) => {
  const { message, code } = error as NodeJS.ErrnoException;
  const reason = error instanceof ConfigError ? error.problems.join('; ') : message || code;
  output.failure('setup', error, () => `The topology could not be declared in the broker of AMQP_URL: ${reason}`);
});
