import { parseArgs } from 'node:util';
import { SERVICES } from '@app/rabbitmq/topology/topology';
import { LETTER_STATUSES } from './dead-letter';
import { UsageError } from './errors';
import type { Filter } from './filter';
import { KINDS, LETTER_QUEUES, type LetterQueue } from './letter-queue';

const COMMANDS = ['list', 'show', 'replay', 'drop'] as const;
export type Command = (typeof COMMANDS)[number];

const OPTIONS = {
  status: { type: 'string' },
  operation: { type: 'string' },
  'api-key': { type: 'string' },
  publisher: { type: 'string' },
  id: { type: 'string' },
  reason: { type: 'string' },
  since: { type: 'string' },
  until: { type: 'string' },
  all: { type: 'boolean' },
  limit: { type: 'string' },
  queue: { type: 'string' },
  service: { type: 'string' },
  kind: { type: 'string' },
  as: { type: 'string' },
  'dry-run': { type: 'boolean' },
  rate: { type: 'string' },
  yes: { type: 'boolean' },
  audit: { type: 'string' },
  json: { type: 'boolean' },
  help: { type: 'boolean', short: 'h' },
} as const;

type Values = ReturnType<typeof parse>['values'];

/** Options that only some commands have. */
const ONLY: Partial<Record<keyof Values, readonly Command[]>> = {
  all: ['list', 'replay', 'drop'],
  'dry-run': ['replay', 'drop'],
  rate: ['replay'],
  as: ['replay'],
  yes: ['drop'],
  audit: ['replay', 'drop'],
  json: ['list', 'show'],
};

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
  const { values, positionals } = parsed(args);
  if (values.help) return undefined;
  const [name, stray] = positionals;
  if (name === undefined) throw new UsageError('A command is missing.');
  const command = COMMANDS.find((known) => known === name);
  if (!command) throw new UsageError(`"${name}" is not a command.`);
  if (stray !== undefined) throw new UsageError(`${name} takes options only, not "${stray}".`);
  for (const option of Object.keys(values) as (keyof Values)[]) {
    if (ONLY[option]?.includes(command) === false) throw new UsageError(`${name} has no option --${option}.`);
  }

  const filter = filterOf(values, now);
  const { all = false, yes = false, json = false, 'dry-run': dryRun = false } = values;
  const isFiltered = Object.keys(filter).length > 0;
  if (all && isFiltered) throw new UsageError('--all means no other condition: give one of them.');
  if (command === 'show' && filter.id === undefined) throw new UsageError('show needs --id ID: list shows it.');
  if (command === 'replay' || command === 'drop') {
    if (!all && !isFiltered) throw new UsageError(`${command} needs a condition such as --id or --status, or --all.`);
  }
  if (command === 'drop' && !yes && !dryRun)
    throw new UsageError('drop deletes permanently: give --yes, or --dry-run for a preview.');
  return {
    command,
    queues: queuesOf(values),
    filter,
    limit: values.limit === undefined ? Infinity : whole('--limit', values.limit, 1_000_000),
    dryRun,
    ...(values.as !== undefined && { as: values.as }),
    rate: values.rate === undefined ? 100 : whole('--rate', values.rate, 10_000),
    ...(values.audit !== undefined && { audit: values.audit }),
    json,
  };
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

function filterOf(values: Values, now: number): Filter {
  const { id, status, operation, publisher, reason, since, until, 'api-key': apiKey } = values;
  for (const [option, value] of Object.entries(values)) {
    if (value === '') throw new UsageError(`--${option} must not be empty.`);
  }
  if (status !== undefined && !LETTER_STATUSES.includes(status.toUpperCase())) {
    throw new UsageError(`--status must be one of: ${LETTER_STATUSES.join(', ')}.`);
  }
  return {
    ...(id !== undefined && { id }),
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

function whole(option: string, value: string, max: number): number {
  const number = Number(value);
  if (/^\d+$/.test(value) && number >= 1 && number <= max) return number;
  throw new UsageError(`${option} must be a whole number from 1 to ${max}.`);
}

const MILLISECONDS = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };
const ISO_TIME = /^\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)?)?$/;

function time(option: string, value: string, now: number): Date {
  const [, digits, unit] = /^(\d{1,6})([smhd])$/.exec(value) ?? [];
  const ago = Number(digits) * MILLISECONDS[unit as keyof typeof MILLISECONDS];
  const date = new Date(digits !== undefined ? now - ago : ISO_TIME.test(value) ? value : NaN);
  if (!Number.isNaN(date.getTime())) return date;
  throw new UsageError(`${option} must be a time such as 2026-01-31T12:00:00Z, or how long ago with s, m, h or d, such as 2h.`);
}
