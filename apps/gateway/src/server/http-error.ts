import { ApiError, HTTP_STATUS, type ErrorStatus } from '@app/contracts/error';

/** In seconds. A caller that was refused because of load may soon try again: its call was not executed. */
const RETRY_AFTER = { 'retry-after': '1' };

/** The same text for every bug. The log has the reason, with the request id. */
const BUG = new ApiError('INTERNAL', 'An internal error occurred. The outcome is unknown.');

/** An error with the HTTP status and the headers of its answer. */
export class HttpError extends ApiError {
  constructor(
    readonly httpStatus: number,
    status: ErrorStatus,
    message: string,
    readonly headers: Readonly<Record<string, string>> = {},
    options?: ErrorOptions,
  ) {
    super(status, message, undefined, options);
  }
}

/** A refusal of the HTTP request itself, before its fields are checked. */
export const refusal = (httpStatus: number, message: string) => new HttpError(httpStatus, 'INVALID_ARGUMENT', message);

/** Answer to an error of any origin. */
export interface HttpAnswer {
  status: number;
  headers: Readonly<Record<string, string>>;
  error: ApiError;
}

/** The answer to any thrown value, without internal details. */
export function httpAnswerOf(thrown: unknown): HttpAnswer {
  const error = apiErrorOf(thrown);
  if (error instanceof HttpError) return { status: error.httpStatus, headers: error.headers, error };
  const headers = error.status === 'UNAVAILABLE' || error.status === 'RESOURCE_EXHAUSTED' ? RETRY_AFTER : {};
  return { status: HTTP_STATUS[error.status], headers, error };
}

function apiErrorOf(thrown: unknown): ApiError {
  if (thrown instanceof ApiError) return thrown.status === 'INTERNAL' ? BUG : thrown;
  switch (httpStatusOf(thrown)) {
    case 404:
      return nothingHere();
    case 413:
      return bodyTooLarge();
    case 415:
      return refusal(415, 'The content type must be application/json.');
    case undefined:
      return BUG;
    default:
      return refusal(400, 'The request could not be read.');
  }
}

export const WRONG_VERSION = 'The version of HTTP must be 1.0 or 1.1.';

export const nothingHere = () => new ApiError('NOT_FOUND', 'There is nothing at this path.');

export const bodyTooLarge = () => refusal(413, 'The body must be at most 1 MiB.');

/** The 4xx status of an error of Fastify (`statusCode`) or Nest (`status`). */
function httpStatusOf(thrown: unknown): number | undefined {
  const { statusCode, status } = (thrown ?? {}) as { statusCode?: unknown; status?: unknown };
  return [statusCode, status].find((value): value is number => typeof value === 'number' && value >= 400 && value < 500);
}
