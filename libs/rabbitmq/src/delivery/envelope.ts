import { randomUUID } from 'node:crypto';
import type { ConsumeMessage } from 'amqplib';
import { ALL_MESSAGES } from '@app/contracts/all-messages';
import { ApiError } from '@app/contracts/error';
import { identifierProblem } from '@app/contracts/fields';
import { IDEMPOTENCY_KEY, REQUEST_ID } from '@app/contracts/headers';
import { DeliveryContext } from './delivery-context';
import { HEADER } from '@app/amqp/messages/headers';
import { EXCHANGES, LANES } from '../topology/topology';

/** The address of a reply. */
export interface ReplyAddress {
  replyTo: string;
  correlationId?: string;
  /** Whether the caller reads several replies in one message. */
  batches: boolean;
}

/** The properties and headers of a message, validated. */
export interface Envelope {
  context: DeliveryContext;
  /** Present when a caller waits and its reply can be addressed. */
  address?: ReplyAddress;
  /** The exchange that it was first published to, when a service has published it again. */
  exchange?: string;
  /** Processes that ended while they handled it as a suspect, when a service has published it again. */
  crashes?: number;
  /** The reason why the message is refused. */
  problem?: ApiError;
}

/** Most bytes in a string property and in a routing key: amqplib throws for longer ones when the message is published again. */
const MAX_PROPERTY_BYTES = 255;
const QUEUE_NAME = /^[A-Za-z0-9._-]{1,255}$/;
/** The exchanges that lead to operations, and the default one, to which only the full-rights account may publish. */
const PUBLISHED_TO: ReadonlySet<string> = new Set([
  '',
  ...EXCHANGES.map(({ name }) => name).filter((name) => name !== 'replies'),
]);

/**
 * Reads the envelope of a delivery. Nothing in it is trusted: for example, invalid UTF-8 grows when it is decoded, beyond the size limit of a
 * property. Our own headers count only when the message was published to `retry`, to which only services and the operator may publish.
 */
export function readEnvelope({ fields, properties }: ConsumeMessage): Envelope {
  const headers = properties.headers ?? {};
  const retried = fields.exchange === 'retry';
  const problems: string[] = [];
  const property = (name: string, value: unknown): string | undefined => {
    if (value === undefined) return undefined;
    if (typeof value === 'string' && Buffer.byteLength(value) <= MAX_PROPERTY_BYTES) return value;
    problems.push(`${name} must be a string of at most ${MAX_PROPERTY_BYTES} bytes.`);
    return undefined;
  };
  const ours = <T>(name: string, isValid: (value: unknown) => value is T): T | undefined => {
    const value: unknown = retried ? headers[name] : undefined;
    return isValid(value) ? value : undefined;
  };

  const pattern = ours(HEADER.routingKey, isString) ?? fields.routingKey;
  if (Buffer.byteLength(pattern) > MAX_PROPERTY_BYTES) problems.push('The routing key is too long.');
  const messageId = property('message_id', properties.messageId);
  const appId = property('app_id', properties.appId);
  // Another service's queue may have dead-lettered the message here, with the original user_id: for an event, that of one of our services.
  const vouched = !retried && !('x-death' in headers);
  const userId = ours(HEADER.originUser, isString) ?? property('user_id', vouched ? properties.userId : undefined);

  const { replyTo } = properties as { replyTo: unknown };
  const validReplyTo = typeof replyTo === 'string' && QUEUE_NAME.test(replyTo) ? replyTo : undefined;
  if (replyTo !== undefined && !validReplyTo) problems.push('reply_to must be the name of a queue.');
  const callersId: unknown = retried ? headers[HEADER.correlationId] : properties.correlationId;
  const correlationId = property('correlation_id', callersId);
  // Without the caller's correlation id the caller cannot match the reply.
  const reachable = validReplyTo && (correlationId !== undefined || callersId === undefined);
  const batches = headers[HEADER.replyBatches] === true;
  const address = reachable
    ? { replyTo: validReplyTo, ...(correlationId !== undefined && { correlationId }), batches }
    : undefined;

  const deadline: unknown = headers[HEADER.deadline];
  const validDeadline = Number.isSafeInteger(deadline) ? (deadline as number) : undefined;
  if (deadline !== undefined && !validDeadline) problems.push(`The header ${HEADER.deadline} must be whole epoch milliseconds.`);

  const apiKey: unknown = headers[HEADER.apiKey];
  const isNeeded = apiKey !== undefined || !TENANTLESS.has(pattern);
  const tenantProblem = isNeeded ? identifierProblem(apiKey) : undefined;
  if (tenantProblem && apiKey === undefined) problems.push(`The header ${HEADER.apiKey} is required.`);
  else if (tenantProblem) problems.push(`The header ${HEADER.apiKey}${tenantProblem}.`);

  const idempotencyKey: unknown = headers[HEADER.idempotencyKey];
  const validIdempotencyKey =
    typeof idempotencyKey === 'string' && IDEMPOTENCY_KEY.test(idempotencyKey) ? idempotencyKey : undefined;
  if (idempotencyKey !== undefined && !validIdempotencyKey) {
    problems.push(`The header ${HEADER.idempotencyKey} must be 1-255 printable ASCII characters.`);
  }

  // A listener can bind the exchange of its dead letters to its lane, and publish there past the permission for a routing key.
  if (!PUBLISHED_TO.has(fields.exchange)) problems.push('The message was published to an exchange that leads to no operation.');

  // A queue that an account declares for its replies can dead-letter into its lane, past the same permission.
  if (isOfCommands(fields.exchange) && 'x-death' in headers) problems.push('The header x-death is not allowed.');

  // CC and BCC route copies: past the permission for a routing key, and into the queues of other services.
  if (!retried && ('CC' in headers || 'BCC' in headers)) problems.push('The headers CC and BCC are not allowed.');

  const requestId: unknown = headers[HEADER.requestId];
  const context = new DeliveryContext({
    apiKey: typeof apiKey === 'string' && !tenantProblem ? apiKey : '',
    messageId,
    requestId: typeof requestId === 'string' && REQUEST_ID.test(requestId) ? requestId : randomUUID(),
    // A command without a caller that waits never expires.
    deadline: address && validDeadline,
    idempotencyKey: validIdempotencyKey,
    awaited: address !== undefined,
    redelivered: fields.redelivered,
    attempt: ours(HEADER.attempt, isCount) ?? 1,
    pattern,
    appId,
    userId,
  });
  const exchange = ours(HEADER.lane, isOfCommands);
  const crashes = ours(HEADER.crashes, isCount);
  const problem = problems[0] ? new ApiError('INVALID_ARGUMENT', problems[0]) : undefined;
  return { context, address, exchange, crashes, problem };
}

const isString = (value: unknown): value is string => typeof value === 'string';
const isOfCommands = (value: unknown): value is string => value === 'calls' || (LANES as readonly unknown[]).includes(value);
const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) > 0;

/** Messages that need no API key. */
const TENANTLESS = new Set(ALL_MESSAGES.filter(({ tenantless }) => tenantless).map(({ pattern }) => pattern));
