import '@app/runtime/stop-while-starting';
import 'reflect-metadata';
import { databaseProblem, onDatabase } from '@app/postgres/tool';
import { readArguments, UsageError, wholeNumber } from '@app/runtime/command-line';
import { counted } from '@app/runtime/counted';
import { ToolOutput } from '@app/runtime/tool-output';
import { RepublishConfig } from '../config';
import { RepublishRepository } from '../db/republish.repository';
import { DATABASE } from '../db/schema';
import { republish } from './republish';

const HELP = `Publishes the events document.changed.v1, user.added.v1 and user.removed.v1 again, for every document that was set, every
membership, and those that ended in the last 30 days.

Usage: npm run events -- republish [options]

  --rate N   most rows of the database per second (default 5000)
  --json     the result as one JSON object: { events, rows: { <kind>: <number> } }
  --help     this text

For a listener that starts late or has lost events. The system keeps running. The events have new ids, are marked "republished", and have the
current versions, so a listener that stores versions can order them. This tool writes the events and the users service publishes them. The tool
waits while too many are unpublished. If it is interrupted, it can be started again.
The database is the one of USERS_DATABASE_URL or DATABASE_URL, else that of a running "npm start".
Exit codes: 0 done, 1 it cannot be done, 2 wrong usage.

Examples:
  npm run events -- republish
  npm run --silent events -- republish --rate 500 --json
`;

const DEFAULT_RATE = '5000';
const output = new ToolOutput();

async function main(args: string[]): Promise<void> {
  const rate = readRate(args);
  if (rate === undefined) return console.log(HELP.trimEnd());
  // The plan of a page depends on its size: without it PostgreSQL may sort all rows for each page.
  const settings = { name: 'users republish', config: new RepublishConfig(), ...DATABASE, genericPlans: false };
  await onDatabase(settings, async (dataSource) => {
    const written = await republish(new RepublishRepository(dataSource), { rate, print: (line) => output.progress(line) });
    output.result({ data: written, lines: [`Wrote ${counted(written.events, 'event')}. The users service publishes them.`] });
  });
}

/** @returns undefined when --help is given */
function readRate(args: string[]): number | undefined {
  const understood = readArguments(
    { options: { rate: 'value', json: 'switch' }, commands: { republish: ['rate', 'json'] } },
    args,
  );
  if (!understood) return undefined;
  const { words, values } = understood;
  if (words.length > 0) throw new UsageError(`"${words[0]}" is one word too many.`);
  return wholeNumber('--rate', values.rate ?? DEFAULT_RATE, 9_999_999);
}

main(process.argv.slice(2)).catch((error: unknown) => output.failure('events', error, databaseProblem));
