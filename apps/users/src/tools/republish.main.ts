import 'reflect-metadata';
import { parseArgs } from 'node:util';
import { createDataSource } from '@app/postgres/data-source';
import { databaseProblem, onDatabase } from '@app/postgres/tool';
import { configOrExit } from '@app/runtime/run-service';
import { republishConfig } from '../config';
import { RepublishRepository } from '../db/republish.repository';
import { DATABASE } from '../db/schema';
import { republish } from './republish';

const HELP = `Publishes the events document.changed.v1 and user.added.v1 again, for every document that was set and every membership.

Usage: npm run events -- republish [--rate N]

  --rate N   most rows of the database per second (default 5000)
  --help     this text

For a listener that starts late or has lost events. The system keeps running. The events have new ids, are marked "republished", and have the
current versions, so a listener that stores versions can order them. This tool writes the events and the users service publishes them. The tool
waits while too many are unpublished. If it is interrupted, it can be started again.
`;

const DEFAULT_RATE = '5000';

async function main(args: string[]): Promise<void> {
  const rate = readRate(args);
  if (rate === undefined) return console.log(HELP.trimEnd());
  const config = configOrExit(republishConfig);
  const dataSource = createDataSource({
    name: 'users republish',
    url: config.databaseUrl,
    caFile: config.databaseCaFile,
    ...DATABASE,
    poolSize: 1,
  });
  await onDatabase(dataSource, async () => {
    const events = await republish(new RepublishRepository(dataSource), { rate, print: (line) => console.log(line) });
    console.log(`${events} events were written; the users service publishes them.`);
  });
}

/** Exit code 2 with this message. */
class UsageError extends Error {}

/** @returns undefined when --help is given */
function readRate(args: string[]): number | undefined {
  let parsed;
  try {
    parsed = parseArgs({
      args,
      options: { rate: { type: 'string', default: DEFAULT_RATE }, help: { type: 'boolean', short: 'h' } },
      allowPositionals: true,
    });
  } catch (error) {
    throw new UsageError((error as Error).message);
  }
  const { values, positionals } = parsed;
  if (values.help) return undefined;
  if (positionals.length !== 1 || positionals[0] !== 'republish') throw new UsageError('The only command is republish.');
  if (!/^[1-9]\d{0,6}$/.test(values.rate)) throw new UsageError('--rate must be a whole number from 1 to 9999999.');
  return Number(values.rate);
}

main(process.argv.slice(2)).catch((error: unknown) => {
  const usage = error instanceof UsageError;
  console.error(usage ? error.message : databaseProblem(error));
  process.exitCode = usage ? 2 : 1;
});
