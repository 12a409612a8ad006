import { ALL_MESSAGES } from '@app/contracts/all-messages';
import type { ErrorBody, ErrorStatus } from '@app/contracts/error';
import type { Message } from '@app/contracts/message';

type AnyMessage = Message<object, object>;

/** An error with which a message may be answered. */
export interface PossibleError {
  status: ErrorStatus;
  when: string;
}

const COMMON: readonly (PossibleError & { appliesTo?: (message: AnyMessage) => boolean })[] = [
  {
    status: 'INVALID_ARGUMENT',
    when: 'The body is not JSON, or a field or header has a wrong type, length or characters. `message` names the first problem, `details` up to 20.',
  },
  {
    status: 'PERMISSION_DENIED',
    when: 'The broker account has no grant for the API key.',
    appliesTo: ({ tenantless }) => !tenantless,
  },
  { status: 'UNAUTHENTICATED', when: 'The API key is unknown.', appliesTo: ({ kind }) => kind === 'command' },
  { status: 'UNAVAILABLE', when: 'Nothing was executed, and nothing will be: repeat it later.' },
  {
    status: 'DEADLINE_EXCEEDED',
    when: 'The outcome is unknown: repeat it with the same identity.',
    appliesTo: ({ kind }) => kind === 'command',
  },
  { status: 'INTERNAL', when: 'A bug. The log of the service has the reason, with the request id.' },
];

/** The errors with which a message may be answered, each status once. */
export function errorsOf(message: AnyMessage): PossibleError[] {
  const { errors: own = {} } = message;
  const common = COMMON.filter(({ appliesTo }) => appliesTo?.(message) ?? true).map(({ status, when }) => ({
    status,
    when: [when, ...(own[status] ? [own[status].when] : [])].join(' '),
  }));
  const others = (Object.keys(own) as ErrorStatus[]).filter((status) => !common.some((one) => one.status === status));
  return [...common, ...others.map((status) => ({ status, when: own[status]!.when }))];
}

/** Statuses that occur with any message. */
export const POSSIBLE_STATUSES = [...new Set(ALL_MESSAGES.flatMap(errorsOf).map(({ status }) => status))];

const FIELD_PROBLEM = 'organizationId is required and must be a string';

/** An example body for each status. */
export const ERROR_EXAMPLES: Readonly<Record<ErrorStatus, ErrorBody>> = {
  INVALID_ARGUMENT: {
    message: FIELD_PROBLEM,
    status: 'INVALID_ARGUMENT',
    details: [{ field: 'organizationId', message: FIELD_PROBLEM }],
  },
  FAILED_PRECONDITION: { message: 'The Idempotency-Key was used with another request.', status: 'FAILED_PRECONDITION' },
  UNAUTHENTICATED: { message: 'The API key is unknown.', status: 'UNAUTHENTICATED' },
  PERMISSION_DENIED: { message: 'The broker account "billing" may not act for this API key.', status: 'PERMISSION_DENIED' },
  NOT_FOUND: { message: 'The document does not exist.', status: 'NOT_FOUND' },
  ALREADY_EXISTS: { message: 'A notification with this notificationId and other content exists.', status: 'ALREADY_EXISTS' },
  RESOURCE_EXHAUSTED: { message: 'Too many calls at the moment.', status: 'RESOURCE_EXHAUSTED' },
  UNAVAILABLE: { message: 'The service could not do it now. Nothing was executed.', status: 'UNAVAILABLE' },
  DEADLINE_EXCEEDED: {
    message: 'The service is unavailable, and whether the command was executed before is unknown.',
    status: 'DEADLINE_EXCEEDED',
  },
  INTERNAL: { message: 'Internal error.', status: 'INTERNAL' },
};

/** The body of an error reply. */
export const ERROR_SCHEMA = {
  type: 'object' as const,
  required: ['message', 'status'],
  properties: {
    message: { type: 'string', description: 'The problem, for developers.' },
    status: { type: 'string', description: 'Kind of the error, for programs; also in header `x-status`.' },
    details: {
      type: 'array',
      maxItems: 20,
      description: 'The first 20 invalid fields. Only with `INVALID_ARGUMENT`.',
      items: { $ref: '#/components/schemas/FieldProblem' },
    },
  },
};

/** One entry of `details`. */
export const FIELD_PROBLEM_SCHEMA = {
  type: 'object',
  required: ['field', 'message'],
  properties: {
    field: { type: 'string', description: 'Its path in the body, for example `users[0].userId`.' },
    message: { type: 'string', description: 'The problem.' },
  },
};
