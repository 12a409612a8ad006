import { ApiError, type ErrorBody, type ErrorStatus } from '@app/contracts/error';
import type { QueueKind } from '../topology/consumed-queues';
import { RETRY_DELAYS } from '../topology/topology';

/** How handling a delivery ended. */
export type Outcome =
  | { kind: 'result'; value: unknown }
  /** Too large, not JSON, a bad envelope, an unknown pattern: no handler has seen it. */
  | { kind: 'malformed'; error: ApiError }
  /** The handler threw. */
  | { kind: 'failed'; error: unknown }
  /** The handler threw because the database is away. */
  | { kind: 'databaseAway' }
  /** The database has been away for longer than a restart takes. The handler was not started. */
  | { kind: 'notStarted' }
  /** Delivered several times and never settled: its consumer crashed, or lost its connection. The handler was not started. */
  | { kind: 'suspect' }
  /** The deadline has passed, so the handler was not started. */
  | { kind: 'expired' };

/** What becomes of the delivery. Whatever is published is published before the ack. */
export type Decision =
  | { do: 'ack'; because: 'acked' | 'expired' | 'dropped' }
  | { do: 'replyThenAck'; reply: { result: unknown } | { error: ErrorBody } }
  | { do: 'retryThenAck'; delay: (typeof RETRY_DELAYS)[number]; error: ErrorBody }
  /** To the letters that this system has to answer for. */
  | { do: 'deadThenAck'; error: ErrorBody }
  /** To the letters that their publisher has to answer for: as they are, or as a stub. */
  | { do: 'refuseThenAck'; error: ErrorBody; stub: boolean }
  /** To the queue whose messages are handled one at a time, with nothing beside them. */
  | { do: 'suspectThenAck' }
  /** Keep it unacknowledged, and handle it again when the database is back. */
  | { do: 'hold' };

export interface Circumstances {
  kind: QueueKind;
  /** An event, which comes from a service of this system. */
  isEvent: boolean;
  awaited: boolean;
  /** 1 at first. */
  attempt: number;
  maxAttempts: number;
  /** Whether a handler may have run for this message before: in an earlier delivery, or in this one before the database went away. */
  mayHaveRun: boolean;
}

/** Trying again cannot help. */
const PERMANENT: ReadonlySet<ErrorStatus> = new Set([
  'INVALID_ARGUMENT',
  'FAILED_PRECONDITION',
  'UNAUTHENTICATED',
  'PERMISSION_DENIED',
  'NOT_FOUND',
  'ALREADY_EXISTS',
]);

/**
 * The one place that decides what becomes of a delivery.
 *
 * | outcome                    | somebody waits                     | nobody waits               |
 * |----------------------------|------------------------------------|----------------------------|
 * | result                     | reply, ack                         | ack                        |
 * | malformed                  | reply the error, ack               | stub to the refused letters, ack |
 * | permanent error            | reply the error, ack               | refused letters, ack; an event: dead letters |
 * | transient error            | reply the error, ack               | retry queue, ack; in the end dead letters |
 * | bug                        | reply INTERNAL with a fixed text, ack | the same                |
 * | database away              | command: hold; query: reply UNAVAILABLE, ack | hold             |
 * | not started                | reply UNAVAILABLE, ack             | never happens              |
 * | suspect                    | suspects, ack                      | the same                   |
 * | deadline passed            | ack                                | never happens              |
 *
 * A query that nobody waits for is malformed, and is dropped: it has no effect that could be missed.
 */
export function decide(outcome: Outcome, circumstances: Circumstances, random = Math.random): Decision {
  const { awaited, kind } = circumstances;
  switch (outcome.kind) {
    case 'expired':
      return { do: 'ack', because: 'expired' };
    case 'suspect':
      return { do: 'suspectThenAck' };
    case 'result':
      return awaited ? { do: 'replyThenAck', reply: { result: outcome.value } } : { do: 'ack', because: 'acked' };
    case 'databaseAway':
      // A query changes nothing, so that saying "nothing was executed" is true, and better than letting its caller wait.
      return kind === 'queries' ? fail(new ApiError('UNAVAILABLE', AWAY), circumstances, random) : { do: 'hold' };
    case 'notStarted':
      return fail(new ApiError('UNAVAILABLE', AWAY), circumstances, random);
    case 'malformed':
      if (awaited) return fail(outcome.error, circumstances, random);
      return kind === 'queries' ? DROP : giveUp(outcome.error.toBody(), circumstances, { stub: true });
    case 'failed':
      return fail(outcome.error, circumstances, random);
  }
}

const DROP: Decision = { do: 'ack', because: 'dropped' };

function fail(thrown: unknown, circumstances: Circumstances, random: () => number): Decision {
  const { kind, awaited, attempt, maxAttempts, mayHaveRun } = circumstances;
  const error = shownAs(thrown, awaited);
  if (awaited) {
    // An earlier run may have been committed: then "not executed" would be a lie.
    const doubtful = error.status === 'UNAVAILABLE' && mayHaveRun && kind !== 'queries';
    return { do: 'replyThenAck', reply: { error: doubtful ? { status: 'DEADLINE_EXCEEDED', message: DOUBTFUL } : error } };
  }
  if (kind === 'queries') return DROP;
  if (PERMANENT.has(error.status)) return giveUp(error, circumstances, { stub: false });
  if (attempt >= maxAttempts) return { do: 'deadThenAck', error };
  return { do: 'retryThenAck', delay: delayOf(attempt, random), error };
}

/** What is wrong with an event is a mistake of this system, whose letters are never dropped. */
const giveUp = (error: ErrorBody, { isEvent }: Circumstances, { stub }: { stub: boolean }): Decision =>
  isEvent ? { do: 'deadThenAck', error } : { do: 'refuseThenAck', error, stub };

/** One in four waits a step longer: what failed together is not tried again together. */
function delayOf(attempt: number, random: () => number): (typeof RETRY_DELAYS)[number] {
  const step = attempt - 1 + (random() < 0.25 ? 1 : 0);
  return RETRY_DELAYS[Math.min(step, RETRY_DELAYS.length - 1)];
}

/** All that a caller learns of a bug. */
export const INTERNAL: ErrorBody = { status: 'INTERNAL', message: 'Internal error.' };

/** Whether an error is somebody's mistake in our code: the log needs its stack. */
export const isBug = (error: unknown): boolean => !(error instanceof ApiError) || error.status === 'INTERNAL';

function shownAs(error: unknown, awaited: boolean): ErrorBody {
  if (error instanceof ApiError && error.status !== 'INTERNAL') return error.toBody();
  // Callers learn nothing of our inside; the dead letters are for those who have to repair it.
  return awaited || !(error instanceof Error) ? INTERNAL : { ...INTERNAL, message: `${error.name}: ${error.message}` };
}

const AWAY = 'The service cannot reach its database. Nothing was executed.';
const DOUBTFUL = 'The service is unavailable, and whether the command was executed before is unknown.';
