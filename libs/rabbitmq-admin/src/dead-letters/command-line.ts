import { SERVICES } from '@app/rabbitmq/topology/topology';
import { readArguments, UsageError, wholeNumber, type ValuesOf } from '@app/runtime/command-line';
import { milliseconds } from '@app/runtime/settings/duration';
import { LETTER_STATUSES } from './dead-letter';
import type { Filter } from './filter';
import { KINDS, LETTER_QUEUES, type LetterQueue } from './letter-queue';

const OPTIONS = {
  status: 'value',
  operation: 'value',
  'api-key': 'value',
  publisher: 'value',
  id: 'value',
  'request-id': 'value',
  user: 'value',
  reason: 'value',
  since: 'value',
  until: 'value',
  all: 'switch',
  limit: 'value',
  queue: 'value',
  service: 'value',
  kind: 'value',
  as: 'value',
  'dry-run': 'switch',
  rate: 'value',
  yes: 'switch',
  audit: 'value',
  json: 'switch',
} as const;

type Values = ValuesOf<typeof OPTIONS>;

const CONDITIONS = [
  'status',
  'operation',
  'api-key',
  'publisher',
  'id',
  'request-id',
  'user',
  'reason',
  'since',
  'until',
] as const;
const WHICH = [...CONDITIONS, 'limit', 'queue', 'service', 'kind'] as const;
const COMMANDS = {
  list: [...WHICH, 'all', 'json'],
  show: [...WHICH, 'audit', 'json'],
  replay: [...WHICH, 'all', 'dry-run', 'rate', 'as', 'audit', 'json'],
  drop: [...WHICH, 'all', 'dry-run', 'yes', 'audit', 'json'],
} as const;
export type Command = keyof typeof COMMANDS;

/** A valid command line. */
export interface Invocation {
  command: Command;
  queues: readonly LetterQueue[];
  filter: Filter;
  limit: number;
  dryRun: boolean;
  /** Broker account with whose rights dead letters of unknown origin are replayed. */
  as?: string;
  /** Dead letters per second. */
  rate: number;
  audit?: string;
  json: boolean;
}

/**
 * @returns undefined when --help is given
 * @throws UsageError
 */
export function readCommandLine(args: string[], now = Date.now()): Invocation | undefined {
  const understood = readArguments({ options: OPTIONS, commands: COMMANDS }, args);
  if (!understood) return undefined;
  const { command, words, values } = understood;
  if (words.length > 0) throw new UsageError(`${command} takes options only, not "${words[0]}".`);

  const filter = filterOf(values, now);
  const { all = false, yes = false, json = false, 'dry-run': dryRun = false } = values;
  const isFiltered = Object.keys(filter).length > 0;
  if (all && isFiltered) throw new UsageError('--all means no other condition: give one of them.');
  if (command === 'show' && filter.id === undefined) throw new UsageError('show needs --id ID: list shows it.');
  if (command === 'replay' || command === 'drop') {
    if (!all && !isFiltered) throw new UsageError(`${command} needs a condition such as --id or --status, or --all.`);
  }
  if (command === 'drop' && filter.user !== undefined && (filter.apiKey ?? filter.id) === undefined)
    throw new UsageError('drop --user needs --api-key or --id: another tenant may have a user with this id.');
  if (command === 'drop' && !yes && !dryRun)
    throw new UsageError('drop deletes permanently: give --yes, or --dry-run for a preview.');
  return {
    command,
    queues: queuesOf(values),
    filter,
    limit: values.limit === undefined ? Infinity : wholeNumber('--limit', values.limit, 1_000_000),
    dryRun,
    ...(values.as !== undefined && { as: values.as }),
    rate: values.rate === undefined ? 100 : wholeNumber('--rate', values.rate, 10_000),
    ...(values.audit !== undefined && { audit: values.audit }),
    json,
  };
}

function filterOf(values: Values, now: number): Filter {
  const { id, user, status, operation, publisher, reason, since, until, 'api-key': apiKey, 'request-id': requestId } = values;
  for (const [option, value] of Object.entries(values)) {
    if (value === '') throw new UsageError(`--${option} must not be empty.`);
  }
  if (status !== undefined && !LETTER_STATUSES.includes(status.toUpperCase())) {
    throw new UsageError(`--status must be one of: ${LETTER_STATUSES.join(', ')}.`);
  }
  return {
    ...(id !== undefined && { id }),
    ...(requestId !== undefined && { requestId }),
    ...(user !== undefined && { user }),
    ...(status !== undefined && { status: status.toUpperCase() }),
    ...(operation !== undefined && { operation }),
    ...(apiKey !== undefined && { apiKey }),
    ...(publisher !== undefined && { publisher }),
    ...(reason !== undefined && { reason }),
    ...(since !== undefined && { since: time('--since', since, now) }),
    ...(until !== undefined && { until: time('--until', until, now) }),
  };
}

function queuesOf({ queue, service, kind }: Values): LetterQueue[] {
  if (queue !== undefined && (service ?? kind) !== undefined) {
    throw new UsageError('--queue says what --service and --kind say: give it alone.');
  }
  if (service !== undefined && !SERVICES.some((known) => known === service)) {
    throw new UsageError(`There is no service "${service}": ${SERVICES.join(', ')}.`);
  }
  if (kind !== undefined && !KINDS.some((known) => known === kind)) {
    throw new UsageError(`There are no dead letters of kind "${kind}": ${KINDS.join(', ')}.`);
  }
  const found = LETTER_QUEUES.filter(
    (one) => one.name === (queue ?? one.name) && one.service === (service ?? one.service) && one.kind === (kind ?? one.kind),
  );
  if (found.length === 0) {
    throw new UsageError(`There are no dead letters in "${queue}", only in ${LETTER_QUEUES.map(({ name }) => name).join(', ')}.`);
  }
  return found;
}

const ISO_TIME = /^\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)?)?$/;

function time(option: string, value: string, now: number): Date {
  const date = new Date(ISO_TIME.test(value) ? value : now - milliseconds(value, ['s', 'm', 'h', 'd']));
  if (!Number.isNaN(date.getTime())) return date;
  throw new UsageError(`${option} must be a time such as 2026-01-31T12:00:00Z, or how long ago with s, m, h or d, such as 2h.`);
}
