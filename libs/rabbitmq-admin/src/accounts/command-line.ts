import { ALL_EVENTS } from '@app/contracts/all-events';
import { OPEN_MESSAGES } from '@app/contracts/all-messages';
import { readArguments, UsageError, wholeNumber, type ValuesOf } from '@app/runtime/command-line';
import { ACCOUNTS, type AccountPurpose } from './rights';
import { EXCHANGES, LANE_NUMBERS, QUEUES, type Lane } from '@app/rabbitmq/topology/topology';
import { DEFAULT_LIMITS, type AccountLimits } from './limits';

const OPERATIONS = OPEN_MESSAGES.map(({ pattern }) => pattern);
const QUERIES = OPEN_MESSAGES.filter(({ kind }) => kind === 'query').map(({ pattern }) => pattern);
const EVENTS = ALL_EVENTS.map(({ type }) => type);

export const HELP = `Creates broker accounts for other services, each with the least rights that it needs.

Usage: npm run accounts -- <command> [options]

  create NAME       a new account; prints its URL with a new password, once
  change NAME       the same account for another purpose: what is not named again is taken away
  rotate NAME       a new password, printed once; the old one opens no new connection
  list              all accounts made by this tool
  delete NAME       the account, whose connections are closed; --queues deletes its queues and what is in them

What it is for (create, change):
  --operations LIST what it may publish, with commas between: ${OPERATIONS.join(',\n                    ')}
  --replies         it waits for replies; goes without saying with a query
  --events LIST     what it listens to, in queues that this command declares and binds: ${EVENTS.join(',\n                    ')}

How much of it (create, change; what is not given stays, or is as said here):
  --lane N          the exchange it publishes to: 1 and 2 are shared, 3 is for an account that shall have one to itself,
                    0 is \`commands\`. Without it, 1 or 2, whichever has fewer accounts
  --queue LIST      its queues, as NAME.<word>; without it one, NAME.events. Each gets every event once
  --connections N   at a time, ${DEFAULT_LIMITS.connections}
  --channels N      at a time, ${DEFAULT_LIMITS.channels}

Options:
  --json            create, change, rotate, list: the result as one JSON object
  --help            this text

Which tenants an account may act for is granted apart: npm run keys -- grant KEY --publisher NAME.
The broker is that of AMQP_URL and RABBITMQ_MANAGEMENT_URL, with the full-rights account, else that of a running "npm start".
Exit codes: 0 done, 1 it cannot be done, 2 wrong usage.

Examples:
  npm run accounts -- create billing --operations notifications.add.v1
  npm run accounts -- create mailer --events notification.added.v1
  npm run accounts -- change billing --operations notifications.add.v1,access.check.v1 --replies
  npm run accounts -- change crawler --operations users.add.v1 --lane 3
`;

/** Of one account: each may hold 256 MiB, and as much in its dead letters. */
const MAX_QUEUES = 10;

const OPTIONS = {
  operations: 'value',
  replies: 'switch',
  events: 'value',
  lane: 'value',
  queue: 'value',
  connections: 'value',
  channels: 'value',
  queues: 'switch',
  json: 'switch',
} as const;

type Values = ValuesOf<typeof OPTIONS>;

const PURPOSE = ['operations', 'replies', 'events', 'lane', 'queue', 'connections', 'channels', 'json'] as const;
const COMMANDS = { create: PURPOSE, change: PURPOSE, rotate: ['json'], list: ['json'], delete: ['queues'] } as const;

/** What an account shall be. What is undefined is for the tool to choose, or stays. */
export interface AccountRequest extends AccountPurpose, Partial<AccountLimits> {
  /** What its queues are called after its name and a dot. */
  queues?: readonly string[];
}

/** A command line that was understood. */
export type Invocation = { json: boolean } & (
  | { command: 'create' | 'change'; name: string; request: AccountRequest }
  | { command: 'rotate'; name: string }
  | { command: 'list' }
  | { command: 'delete'; name: string; queues: boolean }
);

/**
 * @returns undefined when help was asked for
 * @throws UsageError
 */
export function readCommandLine(args: string[]): Invocation | undefined {
  const understood = readArguments({ options: OPTIONS, commands: COMMANDS }, args);
  if (!understood) return undefined;
  const { command, values } = understood;
  const { json = false, queues = false } = values;
  const [name, stray] = understood.words;
  const tooMany = command === 'list' ? name : stray;
  if (tooMany !== undefined) throw new UsageError(`"${tooMany}" is one word too many.`);
  if (command === 'list') return { command, json };
  if (name === undefined) throw new UsageError(`${command} needs the NAME of the account.`);
  const problem = nameProblem(name);
  if (problem) throw new UsageError(problem);
  if (command === 'delete') return { command, name, queues, json };
  return command === 'rotate' ? { command, name, json } : { command, name, request: requestOf(values), json };
}

/** Its queues are named after it: no name may reach those of the system, or of another account. */
function nameProblem(name: string): string | undefined {
  if (!/^[a-z][a-z0-9_-]{0,62}$/.test(name)) {
    return 'NAME must be 1 to 63 lower-case letters, digits, underscores and hyphens, the first a letter.';
  }
  const taken = [...ACCOUNTS, 'amq', ...[...QUEUES, ...EXCHANGES].map((one) => one.name.split('.')[0])];
  return taken.includes(name) ? `"${name}" is a name of the system itself.` : undefined;
}

function requestOf(values: Values): AccountRequest {
  const operations = listOf('--operations', values.operations, OPERATIONS);
  const events = listOf('--events', values.events, EVENTS);
  if (operations.length + events.length === 0) throw new UsageError('Say what it is for: --operations, --events, or both.');
  for (const [option, value] of Object.entries({ replies: values.replies, lane: values.lane })) {
    if (value !== undefined && operations.length === 0) throw new UsageError(`--${option} needs --operations.`);
  }
  if (values.queue !== undefined && events.length === 0) throw new UsageError('--queue needs --events.');
  return {
    operations,
    events,
    replies: values.replies ?? operations.some((operation) => QUERIES.includes(operation)),
    lane: values.lane === undefined ? undefined : laneOf(values.lane),
    queues: values.queue === undefined ? undefined : suffixesOf(values.queue),
    connections: numberOf('--connections', values.connections),
    channels: numberOf('--channels', values.channels),
  };
}

function laneOf(text: string): Lane {
  const lane = LANE_NUMBERS.find((one) => String(one) === text);
  if (lane === undefined) throw new UsageError(`--lane must be one of ${LANE_NUMBERS.join(', ')}.`);
  return lane;
}

function suffixesOf(list: string): string[] {
  const suffixes = [...new Set(list.split(','))];
  const wrong = suffixes.find((suffix) => !/^[a-z0-9][a-z0-9_-]{0,62}$/.test(suffix) || suffix === 'dead');
  if (wrong !== undefined || suffixes.length > MAX_QUEUES) {
    throw new UsageError(
      `--queue must be 1 to ${MAX_QUEUES} words of 1 to 63 lower-case letters, digits, underscores and hyphens, and not "dead".`,
    );
  }
  return suffixes;
}

function numberOf(option: string, text: string | undefined): number | undefined {
  return text === undefined ? undefined : wholeNumber(option, text, 99_999);
}

function listOf(option: string, list: string | undefined, known: readonly string[]): string[] {
  const names = [...new Set(list?.split(',') ?? [])];
  const unknown = names.find((name) => !known.includes(name));
  if (unknown !== undefined) throw new UsageError(`${option} has no "${unknown}"; there are ${known.join(', ')}.`);
  return names;
}
