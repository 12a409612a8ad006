import { parseArgs } from 'node:util';
import { ALL_EVENTS } from '@app/contracts/all-events';
import { OPEN_OPERATIONS } from '@app/contracts/open-operations';
import { ACCOUNTS, type AccountPurpose } from './rights';
import { EXCHANGES, LANE_NUMBERS, QUEUES, type Lane } from '@app/rabbitmq/topology/topology';
import { DEFAULT_LIMITS, type AccountLimits } from './limits';

/** The command line is wrong: exit code 2. */
export class UsageError extends Error {}

const OPERATIONS = OPEN_OPERATIONS.map(({ pattern }) => pattern);
const QUERIES = OPEN_OPERATIONS.filter(({ kind }) => kind === 'query').map(({ pattern }) => pattern);
const EVENTS = ALL_EVENTS.map(({ type }) => type);

export const HELP = `Creates broker accounts for other services, each with the least rights that it needs.

Usage: npm run accounts -- <command> [options]

  create NAME       a new account; prints its URL with a new password, once
  change NAME       gives an account another purpose: rights that are not named again are withdrawn
  rotate NAME       a new password, printed once; the old one opens no new connection
  list              all accounts made by this tool
  delete NAME       deletes the account and closes its connections; --queues also deletes its queues with their messages

Purpose (create, change):
  --operations LIST operations that it may publish, separated by commas: ${OPERATIONS.join(',\n                    ')}
  --replies         it waits for replies; implied by a query
  --events LIST     events that it listens to, in queues that this command declares and binds: ${EVENTS.join(',\n                    ')}

Limits (create, change; an option that is not given stays, or has the default):
  --lane N          the exchange that it publishes to: 1 and 2 are shared, 3 is for an account that needs its own lane,
                    0 is \`commands\`. Default: 1 or 2, the one with fewer accounts
  --queue LIST      its queues, as NAME.<word>. Default: one queue, NAME.events. Each queue gets every event once
  --connections N   most connections at a time, default ${DEFAULT_LIMITS.connections}
  --channels N      most channels at a time, default ${DEFAULT_LIMITS.channels}

Options:
  --json            create, change, rotate, list: the result as one JSON object
  --help            this text

Tenants are granted separately: npm run keys -- grant KEY --publisher NAME.
The broker is that of AMQP_URL and RABBITMQ_MANAGEMENT_URL, with the full-rights account, else that of a running "npm start".
Exit codes: 0 done, 1 failed, 2 wrong usage.

Examples:
  npm run accounts -- create billing --operations notifications.add.v1
  npm run accounts -- create mailer --events notification.added.v1
  npm run accounts -- change billing --operations notifications.add.v1,access.check.v1 --replies
  npm run accounts -- change crawler --operations users.add.v1 --lane 3
`;

/** Most queues of one account: each may hold 256 MiB, and the same in its dead letters. */
const MAX_QUEUES = 10;

const COMMANDS = ['create', 'change', 'rotate', 'list', 'delete'] as const;

const OPTIONS = {
  operations: { type: 'string' },
  replies: { type: 'boolean' },
  events: { type: 'string' },
  lane: { type: 'string' },
  queue: { type: 'string' },
  connections: { type: 'string' },
  channels: { type: 'string' },
  queues: { type: 'boolean' },
  json: { type: 'boolean' },
  help: { type: 'boolean', short: 'h' },
} as const;

type Values = ReturnType<typeof parse>['values'];

const ABOUT_ONE = ['create', 'change'] as const;
const ONLY: Partial<Record<keyof Values, readonly string[]>> = {
  operations: ABOUT_ONE,
  replies: ABOUT_ONE,
  events: ABOUT_ONE,
  lane: ABOUT_ONE,
  queue: ABOUT_ONE,
  connections: ABOUT_ONE,
  channels: ABOUT_ONE,
  queues: ['delete'],
  json: ['create', 'change', 'rotate', 'list'],
};

/** Requested purpose and limits of an account. An undefined field stays, or gets a default. */
export interface AccountRequest extends AccountPurpose, Partial<AccountLimits> {
  /** Suffixes of its queue names, after its name and a dot. */
  queues?: readonly string[];
}

/** A valid command line. */
export type Invocation = { json: boolean } & (
  | { command: 'create' | 'change'; name: string; request: AccountRequest }
  | { command: 'rotate'; name: string }
  | { command: 'list' }
  | { command: 'delete'; name: string; queues: boolean }
);

/**
 * @returns undefined when --help is given
 * @throws UsageError
 */
export function readCommandLine(args: string[]): Invocation | undefined {
  const { values, positionals } = parsed(args);
  const { json = false, queues = false } = values;
  if (values.help) return undefined;
  const [word, name, stray] = positionals;
  if (word === undefined) throw new UsageError('A command is missing.');
  const command = COMMANDS.find((known) => known === word);
  if (!command) throw new UsageError(`"${word}" is not a command.`);
  for (const option of Object.keys(values) as (keyof Values)[]) {
    if (ONLY[option]?.includes(command) === false) throw new UsageError(`${command} has no option --${option}.`);
  }
  const tooMany = command === 'list' ? name : stray;
  if (tooMany !== undefined) throw new UsageError(`"${tooMany}" is one word too many.`);
  if (command === 'list') return { command, json };
  if (name === undefined) throw new UsageError(`${command} needs the NAME of the account.`);
  const problem = nameProblem(name);
  if (problem) throw new UsageError(problem);
  if (command === 'delete') return { command, name, queues, json };
  return command === 'rotate' ? { command, name, json } : { command, name, request: requestOf(values), json };
}

/** Queues are named after their account, so no name may match queues of the system or of another account. */
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
  if (text === undefined) return undefined;
  if (!/^[1-9]\d{0,4}$/.test(text)) throw new UsageError(`${option} must be a whole number from 1 to 99999.`);
  return Number(text);
}

function listOf(option: string, list: string | undefined, known: readonly string[]): string[] {
  const names = [...new Set(list?.split(',') ?? [])];
  const unknown = names.find((name) => !known.includes(name));
  if (unknown !== undefined) throw new UsageError(`${option} has no "${unknown}"; there are ${known.join(', ')}.`);
  return names;
}

const parse = (args: string[]) => parseArgs({ args, options: OPTIONS, allowPositionals: true });

function parsed(args: string[]) {
  try {
    return parse(args);
  } catch (error) {
    // The first sentence names the problem. The others explain how to pass unusual values.
    throw new UsageError(`${(error as Error).message.split('. ')[0]}.`);
  }
}
