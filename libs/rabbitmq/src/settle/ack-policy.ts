import { ApiError, PASSING, type ErrorBody, type ErrorStatus } from '@app/contracts/error';
import type { QueueKind } from '../topology/consumed-queues';
import { MOST_CRASHES, RETRY_DELAYS } from '../topology/topology';

/** Outcome of handling a delivery. */
export type Outcome =
  | { kind: 'result'; value: unknown }
  /** Too large, not JSON, a bad envelope or an unknown pattern. The handler was not started. */
  | { kind: 'malformed'; error: ApiError }
  /** The handler threw. */
  | { kind: 'failed'; error: unknown }
  /** The handler threw because the database is away. */
  | { kind: 'databaseAway' }
  /** The database has been away for longer than a restart takes. The handler was not started. */
  | { kind: 'notStarted' }
  /** Delivered several times and never settled: the consumers crashed or lost their connection. The handler was not started. */
  | { kind: 'suspect' }
  /** A suspect that may have ended a process just now, one of so many. In its queue every kill would count while it waits. The handler was not started. */
  | { kind: 'crashed'; crashes: number }
  /** The deadline has passed, so the handler was not started. */
  | { kind: 'expired' };

/** Decision about a delivery. Every publication comes before the ack, except a refusal. */
export type Decision =
  | { do: 'ack'; because: 'acked' | 'expired' | 'dropped' }
  | { do: 'replyThenAck'; reply: { result: unknown } | { error: ErrorBody } }
  /** The error promises that the command will not be executed: a redelivery may execute it, until the broker has the ack. */
  | { do: 'ackThenReply'; reply: { error: ErrorBody } }
  | { do: 'retryThenAck'; delay: (typeof RETRY_DELAYS)[number]; error: ErrorBody }
  /** To the dead letters caused by this system. */
  | { do: 'deadThenAck'; error: ErrorBody }
  /** To the dead letters caused by their publisher: complete, or as a stub. */
  | { do: 'refuseThenAck'; error: ErrorBody; stub: boolean }
  /** To the suspect queue, whose messages are handled alone in their process. */
  | { do: 'suspectThenAck' }
  /** A suspect that may have ended a process goes to the queue of retried commands, and waits there: no kill counts in that queue. */
  | { do: 'againThenAck' }
  /** To the dead letters that have ended their processes. */
  | { do: 'crashedThenAck' }
  /** Keeps it unacknowledged, and handles it again when the database is back. */
  | { do: 'hold' };

export type FinalDecision = Exclude<Decision, { do: 'hold' }>;

export interface Circumstances {
  kind: QueueKind;
  /** An event from a service of this system. */
  isEvent: boolean;
  awaited: boolean;
  /** 1 at first. */
  attempt: number;
  maxAttempts: number;
  /** Whether a handler may have run for this message before: in an earlier delivery, or in this one before the database went away. */
  mayHaveRun: boolean;
}

/** Errors that a retry cannot fix. */
const PERMANENT: ReadonlySet<ErrorStatus> = new Set([
  'INVALID_ARGUMENT',
  'FAILED_PRECONDITION',
  'UNAUTHENTICATED',
  'PERMISSION_DENIED',
  'NOT_FOUND',
  'ALREADY_EXISTS',
]);

/** Whether the caller learns that its command was not executed and never will be. */
const isRefusal = (status: ErrorStatus): boolean => status !== 'INTERNAL' && status !== 'DEADLINE_EXCEEDED';

/**
 * The one place that decides what becomes of a delivery.
 *
 * | outcome                    | a caller waits                     | no caller waits            |
 * |----------------------------|------------------------------------|----------------------------|
 * | result                     | reply, ack                         | ack                        |
 * | malformed                  | ack, reply the error               | stub to the refused queue, ack |
 * | permanent error            | ack, reply the error               | refused queue, ack; an event: dead queue |
 * | transient error            | ack, reply the error               | retry queue, ack; after the last attempt: dead queue |
 * | bug                        | reply INTERNAL with a fixed text, ack | retry queue, ack; in the end dead letters |
 * | database away              | command: hold; query, after one more try: reply UNAVAILABLE, ack | hold |
 * | not started                | ack, reply UNAVAILABLE             | never happens              |
 * | suspect                    | suspect queue, ack                 | the same                   |
 * | crashed                    | queue of retried commands, ack; after the fourth crash: crashed queue | the same |
 * | deadline passed            | ack                                | never happens              |
 *
 * A query without a caller that waits is malformed. It is dropped, because a query has no effect.
 */
export function decide(outcome: Outcome, circumstances: Circumstances, random = Math.random): Decision {
  const { awaited, kind } = circumstances;
  switch (outcome.kind) {
    case 'expired':
      return { do: 'ack', because: 'expired' };
    case 'suspect':
      return { do: 'suspectThenAck' };
    case 'crashed':
      return { do: outcome.crashes < MOST_CRASHES ? 'againThenAck' : 'crashedThenAck' };
    case 'result':
      return awaited ? { do: 'replyThenAck', reply: { result: outcome.value } } : { do: 'ack', because: 'acked' };
    case 'databaseAway':
      // A query changes nothing, so "nothing was executed" is true, and its caller need not wait.
      return kind === 'queries' ? fail(new ApiError('UNAVAILABLE', AWAY), circumstances, random) : HOLD;
    case 'notStarted':
      return fail(new ApiError('UNAVAILABLE', AWAY), circumstances, random);
    case 'malformed':
      if (awaited) return fail(outcome.error, circumstances, random);
      return kind === 'queries' ? DROP : giveUp(outcome.error.toBody(), circumstances, { stub: true });
    case 'failed':
      return fail(outcome.error, circumstances, random);
  }
}

export const HOLD = { do: 'hold' } as const satisfies Decision;
const DROP: Decision = { do: 'ack', because: 'dropped' };

function fail(thrown: unknown, circumstances: Circumstances, random: () => number): Decision {
  const { kind, awaited, attempt, maxAttempts, mayHaveRun } = circumstances;
  const error = shownAs(thrown, awaited);
  if (awaited) {
    if (kind === 'queries' || !isRefusal(error.status)) return { do: 'replyThenAck', reply: { error } };
    // An earlier run may have been committed, or may still be: then "not executed" would be false.
    if (mayHaveRun && PASSING.has(error.status)) return { do: 'replyThenAck', reply: { error: doubtful(error) } };
    return { do: 'ackThenReply', reply: { error } };
  }
  if (kind === 'queries') return DROP;
  if (PERMANENT.has(error.status)) return giveUp(error, circumstances, { stub: false });
  if (attempt >= maxAttempts) return { do: 'deadThenAck', error };
  return { do: 'retryThenAck', delay: delayOf(attempt, random), error };
}

/** A bad event is a mistake of this system: it goes to the dead queue, which never drops. */
const giveUp = (error: ErrorBody, { isEvent }: Circumstances, { stub }: { stub: boolean }): Decision =>
  isEvent ? { do: 'deadThenAck', error } : { do: 'refuseThenAck', error, stub };

/** One retry in four waits a step longer, so that commands that failed together are not retried together. */
function delayOf(attempt: number, random: () => number): (typeof RETRY_DELAYS)[number] {
  const step = attempt - 1 + (random() < 0.25 ? 1 : 0);
  return RETRY_DELAYS[Math.min(step, RETRY_DELAYS.length - 1)];
}

/** The only error that a caller sees for a bug. */
export const INTERNAL: ErrorBody = { status: 'INTERNAL', message: 'Internal error.' };

/** Whether an error is a bug in our code, whose stack belongs in the log. */
export const isBug = (error: unknown): boolean => !(error instanceof ApiError) || error.status === 'INTERNAL';

function shownAs(error: unknown, awaited: boolean): ErrorBody {
  if (error instanceof ApiError && error.status !== 'INTERNAL') return error.toBody();
  // Callers must not see internals. Dead letters keep the reason, for the operator.
  return awaited || !(error instanceof Error) ? INTERNAL : { ...INTERNAL, message: `${error.name}: ${error.message}` };
}

const AWAY = 'The service cannot reach its database. Nothing was executed.';

const doubtful = ({ status, message }: ErrorBody): ErrorBody => ({
  status: 'DEADLINE_EXCEEDED',
  message: PERMANENT.has(status)
    ? `${message} Whether the command was executed before is unknown.`
    : 'The service is unavailable, and whether the command was executed before is unknown.',
});
