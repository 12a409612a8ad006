import { EVENT_TYPES } from '@app/contracts/event-types';
import type { Handlers } from './events';

export interface ListenOptions {
  /**
   * Its queue, as printed by `npm run accounts`: `billing.events`. An account created before version 0.2 may give a queue that does not exist, named
   * `<account>.<word>`. Then it is created.
   */
  queue: string;
  /** Handlers for all event types that the operator has bound to the queue. An event of another type is acknowledged. */
  handlers: Handlers;
  /** Most events handled at a time, 1 to 1000. Default 20. With 1 and one process they are handled in the order of arrival, but for letters. */
  prefetch?: number | undefined;
  /** Attempts before an event becomes a dead letter, 1 to 20. Default 8: the waits between them take a minute in total. */
  tries?: number | undefined;
  /** Most waiting events in a queue that is created here. Above it the oldest become dead letters. Default 100,000. */
  maxLength?: number | undefined;
  /** How long to wait for the broker, in milliseconds; Infinity: as long as it takes. Default 10,000. */
  timeoutMs?: number | undefined;
}

const TYPES: ReadonlySet<string> = new Set(Object.values(EVENT_TYPES));
const QUEUE_NAME = /^[A-Za-z0-9._-]{1,200}$/;

/** The options with their defaults. @throws RangeError for an invalid one */
export function readListenOptions({
  queue,
  handlers,
  prefetch = 20,
  tries = 8,
  maxLength = 100_000,
  timeoutMs = 10_000,
}: ListenOptions) {
  if (!QUEUE_NAME.test(queue)) throw new RangeError('queue must be 1-200 letters, digits, dots, underscores and hyphens.');
  if (Object.keys(handlers).length === 0) throw new RangeError('handlers must have at least one type of event.');
  for (const [type, handler] of Object.entries(handlers)) requireHandler(type, handler);
  requireWhole('prefetch', prefetch, 1000);
  requireWhole('tries', tries, 20);
  requireWhole('maxLength', maxLength, 10_000_000);
  if (!(timeoutMs > 0)) throw new RangeError('timeoutMs must be more than 0.');
  return { queue, handlers, prefetch, tries, maxLength, timeoutMs };
}

/** Otherwise its events would be acknowledged, and lost. Types allow an undefined one. */
function requireHandler(type: string, handler: unknown): void {
  if (!TYPES.has(type)) throw new RangeError(`${type} is not a type of event.`);
  if (typeof handler !== 'function') throw new RangeError(`the handler of ${type} must be a function.`);
}

function requireWhole(name: string, value: number, max: number): void {
  if (!Number.isInteger(value) || value < 1 || value > max)
    throw new RangeError(`${name} must be a whole number from 1 to ${max}.`);
}
