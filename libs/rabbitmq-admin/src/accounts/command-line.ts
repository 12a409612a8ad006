import { ALL_EVENTS } from '@app/contracts/all-events';
import { OPEN_MESSAGES } from '@app/contracts/all-messages';
import { advice, readArguments, UsageError, wholeNumber, type ValuesOf } from '@app/runtime/command-line';
import { ACCOUNTS, type AccountPurpose } from './rights';
import { EXCHANGES, LANE_NUMBERS, QUEUES, type Lane } from '@app/rabbitmq/topology/topology';
import { DEFAULT_LIMITS, type AccountLimits } from './limits';

const OPERATIONS = OPEN_MESSAGES.map(({ pattern }) => pattern);
const QUERIES = OPEN_MESSAGES.filter(({ kind }) => kind === 'query').map(({ pattern }) => pattern);
const EVENTS = ALL_EVENTS.map(({ type }) => type);

export const HELP = `Creates broker accounts for other services, each with the least rights that it needs.

Usage: npm run accounts -- COMMAND [options]

  create NAME       a new account; prints its URL with a new password, once
  change NAME       gives an account another purpose: rights that are not named again are withdrawn. A channel that is open
                    and busy keeps them: rabbitmqctl close_all_user_connections NAME changed
                    Without --operations and --events the purpose stays
  rotate NAME       a new password, printed once; the old one opens no new connection
  list              all accounts made by this tool
  delete NAME       deletes the account and closes its connections; --queues also deletes its queues with their messages, now or later

Purpose (create, change):
  --operations LIST operations that it may publish, separated by commas: ${OPERATIONS.join(',\n                    ')}
  --replies         it waits for replies; implied by a query
  --events LIST     events that it listens to, in queues that this command declares and binds: ${EVENTS.join(',\n                    ')}

Limits (create, change; an option that is not given stays, or has the default):
  --lane N          the exchange that it publishes to: 1 and 2 are shared, 3 is for an account that needs its own lane,
                    0 is \`commands\`. Default: 1 or 2, the one with fewer accounts
  --queue LIST      its queues, as NAME.WORD. Default: one queue, NAME.events. Each queue gets every event once
  --connections N   most connections at a time, default ${DEFAULT_LIMITS.connections}
  --channels N      most channels at a time, default ${DEFAULT_LIMITS.channels}

Options:
  --json            the result as one JSON object
  --help            this text

Tenants are granted separately: npm run keys -- grant KEY --publisher NAME.
The broker is that of AMQP_URL and RABBITMQ_MANAGEMENT_URL, with the full-rights account, else that of a running "npm start".
Exit codes: 0 done, 1 failed, 2 wrong usage.

Examples:
  npm run accounts -- create billing --operations notifications.add.v1
  npm run accounts -- create mailer --events notification.added.v1
  npm run accounts -- change billing --operations notifications.add.v1,access.check.v1 --replies
  npm run accounts -- change crawler --lane 3 --connections 100
`;

/** Most queues of one account: each may hold 256 MiB, and the same in its dead letters. */
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
const COMMANDS = { create: PURPOSE, change: PURPOSE, rotate: ['json'], list: ['json'], delete: ['queues', 'json'] } as const;

/** Requested purpose and limits of an account. An undefined field stays, or gets a default. */
export interface AccountRequest extends AccountPurpose, Partial<AccountLimits> {
  /** Operations and events, which are empty here, stay as they are. */
  keepsPurpose: boolean;
  /** Suffixes of its queue names, after its name and a dot. */
  queues?: readonly string[];
}

/** A valid command line. */
export type Invocation =
  | { command: 'create' | 'change'; name: string; request: AccountRequest }
  | { command: 'rotate'; name: string }
  | { command: 'list' }
  | { command: 'delete'; name: string; queues: boolean };

/**
 * @returns undefined when --help is given
 * @throws UsageError
 */
export function readCommandLine(args: string[]): Invocation | undefined {
  const understood = readArguments({ options: OPTIONS, commands: COMMANDS }, args);
  if (!understood) return undefined;
  const { command, values } = understood;
  const { queues = false } = values;
  const [name, stray] = understood.words;
  const tooMany = command === 'list' ? name : stray;
  if (tooMany !== undefined) throw new UsageError(`"${tooMany}" is one word too many.`);
  if (command === 'list') return { command };
  if (name === undefined) throw new UsageError(`${command} needs the NAME of the account.`);
  const problem = nameProblem(name);
  if (problem) throw new UsageError(problem);
  if (command === 'delete') return { command, name, queues };
  return command === 'rotate' ? { command, name } : { command, name, request: requestOf(command, values) };
}

/** Queues are named after their account, so no name may match queues of the system or of another account. */
function nameProblem(name: string): string | undefined {
  if (!/^[a-z][a-z0-9_-]{0,62}$/.test(name)) {
    return 'NAME must be 1 to 63 lower-case letters, digits, underscores and hyphens, the first a letter.';
  }
  const taken = [...ACCOUNTS, 'amq', ...[...QUEUES, ...EXCHANGES].map((one) => one.name.split('.')[0])];
  return taken.includes(name) ? `"${name}" is a name of the system itself.` : undefined;
}

function requestOf(command: 'create' | 'change', values: Values): AccountRequest {
  const operations = listOf('--operations', values.operations, OPERATIONS);
  const events = listOf('--events', values.events, EVENTS);
  const keepsPurpose = command === 'change' && operations.length + events.length === 0;
  if (!keepsPurpose) {
    if (operations.length + events.length === 0) throw new UsageError('Say what it is for: --operations, --events, or both.');
    if (values.lane !== undefined && operations.length === 0) throw new UsageError('--lane needs --operations.');
    if (values.queue !== undefined && events.length === 0) throw new UsageError('--queue needs --events.');
  }
  if (values.replies && operations.length === 0) throw new UsageError('--replies needs --operations.');
  return {
    keepsPurpose,
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
  if (unknown !== undefined) throw new UsageError(`${option} has no "${unknown}"; ${advice(unknown, known)}`);
  return names;
}
