import { HTTP_MESSAGES } from '@app/contracts/all-messages';
import { ERROR_STATUSES, HTTP_STATUS, type ErrorBody, type ErrorStatus } from '@app/contracts/error';
import type { Message } from '@app/contracts/message';

/** A reason for an error answer. */
interface DocumentedError {
  /** Only for requests that reach no operation. */
  routing?: true;
  http: number;
  status: ErrorStatus;
  when: string;
  message: string;
  details?: ErrorBody['details'];
}

/** Decided before the operation, in this order. */
const BEFORE: readonly DocumentedError[] = [
  {
    http: 431,
    status: 'INVALID_ARGUMENT',
    when: 'The headers are larger than 16 KiB, or more than 128.',
    message: 'The headers are too large.',
  },
  {
    routing: true,
    http: 400,
    status: 'INVALID_ARGUMENT',
    when: 'HTTP that two programs may read in two ways, such as two `Host` headers. The connection is closed.',
    message: 'The header Host must be sent once.',
  },
  {
    routing: true,
    http: 404,
    status: 'NOT_FOUND',
    when: 'There is nothing at the path.',
    message: 'There is nothing at this path.',
  },
  {
    routing: true,
    http: 405,
    status: 'INVALID_ARGUMENT',
    when: 'The path exists with another method: see `Allow`.',
    message: 'The method must be POST.',
  },
  {
    http: 401,
    status: 'UNAUTHENTICATED',
    when: 'A credential header is missing or repeated, the API key is unknown, or the token is wrong, expired or revoked. It is checked before the body is read, and the answer is the same in all these cases.',
    message: 'A valid x-svc-api-key and x-svc-auth-token are required.',
  },
  {
    http: 403,
    status: 'PERMISSION_DENIED',
    when: 'The token is right and the API key is disabled.',
    message: 'This API key is disabled.',
  },
  {
    http: 429,
    status: 'RESOURCE_EXHAUSTED',
    when: 'Too many calls: of this API key in a second, of this API key at the moment (more than its share), or of all API keys at the moment. Nothing was done; try again after `Retry-After` seconds.',
    message: 'Too many calls of this API key.',
  },
  {
    http: 415,
    status: 'INVALID_ARGUMENT',
    when: 'The body is not declared as `application/json` in UTF-8, or is compressed.',
    message: 'The content type must be application/json.',
  },
  { http: 413, status: 'INVALID_ARGUMENT', when: 'The body is larger than 1 MiB.', message: 'The body must be at most 1 MiB.' },
  {
    http: 408,
    status: 'INVALID_ARGUMENT',
    when: 'The headers took longer than 10 s to arrive, or the whole request longer than 15 s.',
    message: 'The request took too long to arrive.',
  },
  {
    http: 400,
    status: 'INVALID_ARGUMENT',
    when: 'The body is not JSON, or a field has the wrong type, length or characters, or the combination of filters is not supported. `message` names the first problem, `details` up to 20.',
    message: 'data.organizationId is required and must be a string',
    details: [{ field: 'data.organizationId', message: 'data.organizationId is required and must be a string' }],
  },
];

/** Decided in the operation or after it. */
const AFTER: readonly DocumentedError[] = [
  {
    http: 503,
    status: 'UNAVAILABLE',
    when: 'A part of the system is away or has no room, or the call had no turn in time. It was not executed and never will be; try again after `Retry-After` seconds.',
    message: 'The service is unavailable; nothing was executed.',
  },
  {
    http: 504,
    status: 'DEADLINE_EXCEEDED',
    when: 'No answer in time: the outcome is unknown. Safe to repeat, with the same `notificationId` or `Idempotency-Key` where the operation takes one.',
    message: 'The outcome is unknown: no answer came in time. It is safe to repeat with the same identity.',
  },
  {
    http: 500,
    status: 'INTERNAL',
    when: 'A bug. Report it with the `x-request-id` of the answer.',
    message: 'An internal error occurred. The outcome is unknown.',
  },
];

/** Errors that an operation declares. */
const ownErrors = ({ errors = {} }: Message<object, object>): DocumentedError[] =>
  (Object.keys(errors) as ErrorStatus[]).map((status) => ({ http: HTTP_STATUS[status], status, ...errors[status]! }));

const OWN = new Map(HTTP_MESSAGES.flatMap(ownErrors).map((error) => [JSON.stringify(error), error])).values();

/** In the order in which they are decided, for people. */
export const ERROR_TABLE = [
  '| HTTP | `error.status` | when |',
  '|---|---|---|',
  ...[...BEFORE, ...OWN, ...AFTER].map(({ http, status, when }) => `| ${http} | \`${status}\` | ${when} |`),
].join('\n');

const HEADERS: Record<number, Record<string, object>> = {
  429: { 'Retry-After': { $ref: '#/components/headers/RetryAfter' } },
  503: { 'Retry-After': { $ref: '#/components/headers/RetryAfter' } },
};

/** The error answers of an operation. */
export function errorResponses(message: Message<object, object>): Record<string, object> {
  const responses: Record<string, object> = {};
  const possible = [...BEFORE.filter(({ routing }) => !routing), ...ownErrors(message), ...AFTER];
  for (const http of new Set(possible.map((error) => error.http))) {
    const errors = possible.filter((error) => error.http === http);
    responses[http] = {
      description: errors.map(({ status, when }) => `\`${status}\`: ${when}`).join('\n\n'),
      headers: { 'x-request-id': { $ref: '#/components/headers/RequestId' }, ...HEADERS[http] },
      content: {
        'application/json': {
          schema: { $ref: '#/components/schemas/Failure' },
          examples: Object.fromEntries(
            errors.map((error, index) => [exampleName(error, index, errors), { value: { error: bodyOf(error) } }]),
          ),
        },
      },
    };
  }
  return responses;
}

const bodyOf = ({ message, status, details }: DocumentedError): ErrorBody => ({ message, status, ...(details && { details }) });

/** An operation may have several errors of one status. */
const exampleName = ({ status }: DocumentedError, index: number, errors: readonly DocumentedError[]) =>
  errors.findIndex((error) => error.status === status) === index ? status : `${status}_${index}`;

/** The body of every error. */
export const FAILURE_SCHEMAS = {
  Failure: {
    type: 'object',
    required: ['error'],
    properties: { error: { $ref: '#/components/schemas/ErrorBody' } },
  },
  ErrorBody: {
    type: 'object',
    required: ['message', 'status'],
    properties: {
      message: { type: 'string', description: 'The problem, for developers.' },
      status: { type: 'string', enum: ERROR_STATUSES, description: 'Kind of the error, for programs.' },
      details: {
        type: 'array',
        maxItems: 20,
        description: 'The first 20 invalid fields. Only with `INVALID_ARGUMENT`.',
        items: { $ref: '#/components/schemas/FieldProblem' },
      },
    },
  },
  FieldProblem: {
    type: 'object',
    required: ['field', 'message'],
    properties: {
      field: {
        type: 'string',
        description:
          'Its path, for example `data.users[0].userId`, or `data` for a problem of several fields or entries, a misspelt name, or a field that is not allowed.',
      },
      message: { type: 'string', description: 'The problem.' },
    },
  },
};
