/**
 * Error statuses of this system, from google.rpc.Code. Published callable-function clients turn any other name into `internal` and lose the
 * message. https://github.com/googleapis/googleapis/blob/master/google/rpc/code.proto
 */
export const ERROR_STATUSES = [
  'INVALID_ARGUMENT',
  'FAILED_PRECONDITION',
  'UNAUTHENTICATED',
  'PERMISSION_DENIED',
  'NOT_FOUND',
  'ALREADY_EXISTS',
  'RESOURCE_EXHAUSTED',
  'UNAVAILABLE',
  'DEADLINE_EXCEEDED',
  'INTERNAL',
] as const;

export type ErrorStatus = (typeof ERROR_STATUSES)[number];

/** The HTTP status of each. */
export const HTTP_STATUS: Readonly<Record<ErrorStatus, number>> = {
  INVALID_ARGUMENT: 400,
  FAILED_PRECONDITION: 400,
  UNAUTHENTICATED: 401,
  PERMISSION_DENIED: 403,
  NOT_FOUND: 404,
  ALREADY_EXISTS: 409,
  RESOURCE_EXHAUSTED: 429,
  INTERNAL: 500,
  UNAVAILABLE: 503,
  DEADLINE_EXCEEDED: 504,
};

/**
 * Errors that depend on the moment: an earlier copy of the same command may have been executed, or may still be, because what was missing is created
 * meanwhile. All others would have been the same then.
 */
export const PASSING: ReadonlySet<ErrorStatus> = new Set([
  'UNAVAILABLE',
  'RESOURCE_EXHAUSTED',
  'PERMISSION_DENIED',
  'UNAUTHENTICATED',
  'NOT_FOUND',
]);

/** One invalid field: its path and the problem. */
export interface FieldProblem {
  field: string;
  message: string;
}

/** An error on the wire: the value of `error` in an HTTP response, and the whole body of an error reply over AMQP. */
export interface ErrorBody {
  message: string;
  status: ErrorStatus;
  /** Only with INVALID_ARGUMENT; at most 20 entries. */
  details?: FieldProblem[];
}

/**
 * An error that may be shown to the caller. Any other thrown value is a bug, and the caller sees INTERNAL with a fixed text.
 *
 * `UNAVAILABLE` is a promise: nothing was executed and nothing will be. `DEADLINE_EXCEEDED` says that the outcome is unknown.
 */
export class ApiError extends Error {
  override readonly name = 'ApiError';

  constructor(
    readonly status: ErrorStatus,
    message: string,
    readonly details?: FieldProblem[],
    options?: ErrorOptions,
  ) {
    super(message, options);
  }

  toBody(): ErrorBody {
    return { message: this.message, status: this.status, ...(this.details && { details: this.details }) };
  }
}
