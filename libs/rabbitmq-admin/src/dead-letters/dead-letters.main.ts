import { leaveSignalsToOthers } from '@app/runtime/stop-while-starting';
import { existsSync, openSync } from 'node:fs';
import { brokerTlsFiles } from '@app/runtime/settings/tls-settings';
import { ToolOutput } from '@app/runtime/tool-output';
import { ConfigError } from '@app/runtime/settings/settings';
import { DeadLettersConfig } from '@app/rabbitmq/config';
import { auditTo } from './audit';
import { readCommandLine, type Invocation } from './command-line';
import { DeadLetterError } from './errors';
import { HELP } from './help';
import { run } from './run';
import { parseBrokerUrl } from '@app/runtime/settings/broker-url';
import { destroySocket, openConnection } from '@app/amqp/connection/open-connection';
import { within } from '@app/runtime/within';

const CLOSE_TIMEOUT_MS = 2000;
const output = new ToolOutput();

async function main(args: string[]): Promise<boolean> {
  const invocation = readCommandLine(args);
  if (!invocation) {
    console.log(HELP.trimEnd());
    return true;
  }
  const config = new DeadLettersConfig();
  const { amqpUrl, services } = config;
  const own = parseBrokerUrl(amqpUrl).username;
  // Of `show`, stdout is the letter.
  const say = invocation.command === 'show' ? (line: string) => output.note(line) : (line: string) => console.log(line);
  const audit = auditTo(say, auditFile(invocation));
  const stopping = new AbortController();
  for (const name of ['SIGINT', 'SIGTERM'] as const) process.once(name, () => stopping.abort());
  leaveSignalsToOthers();

  const model = await openConnection({ url: amqpUrl, tlsFiles: brokerTlsFiles(config), name: 'dead letters' });
  try {
    return await run(model, invocation, {
      print: (text) => console.log(text),
      note: (text) => output.note(text),
      audit,
      accounts: { own, services: new Set([...services, own]) },
      signal: stopping.signal,
    });
  } finally {
    await within(CLOSE_TIMEOUT_MS, (async () => model.close())());
    destroySocket(model);
  }
}

/** Opens the audit file before any action. Default: in .local of a checkout. A container has no .local, and its output is collected. */
function auditFile({ command, dryRun, audit }: Invocation): number | undefined {
  if (dryRun || command === 'list') return undefined;
  const file = audit ?? (existsSync('.local') ? '.local/dead-letters.log' : undefined);
  if (file === undefined) return undefined;
  try {
    return openSync(file, 'a', 0o600);
  } catch (error) {
    throw new DeadLetterError(`${file} cannot be written: ${(error as Error).message}`);
  }
}

main(process.argv.slice(2)).then(
  (done) => (process.exitCode = done ? 0 : 1),
  (thrown: unknown) => output.failure('dead-letters', thrown, reasonOf),
);

function reasonOf(thrown: unknown): string {
  const error = thrown as NodeJS.ErrnoException;
  if (error instanceof ConfigError) return error.problems.join('\n');
  return error instanceof DeadLetterError
    ? error.message
    : `The broker of AMQP_URL cannot be used: ${error.message || error.code}`;
}
