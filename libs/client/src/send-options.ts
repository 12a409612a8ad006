import { randomUUID } from 'node:crypto';
import { newMessageId } from '@app/amqp/messages/message-id';
import type { Operation } from '@app/amqp/messages/message-properties';
import { ApiError } from '@app/contracts/error';
import { IDEMPOTENCY_KEY, REQUEST_ID } from '@app/contracts/headers';
import { MAX_BODY_BYTES, MAX_QUERY_BYTES, MAX_VALUES, valuesOf } from '@app/contracts/json';
import { KINDS, type Operations } from './operations';

/** Options of one command or query. */
export interface SendOptions {
  /** The tenant. Default: that of the client. */
  apiKey?: string | undefined;
  /** Time from now to the deadline, in milliseconds, at most 5 minutes. Default: that of the client. */
  timeoutMs?: number | undefined;
  /** Identity of the effect, 1-255 bytes. A notification sent twice with the same id is stored once. Default: a UUID of version 7. */
  messageId?: string | undefined;
  /** 1-255 printable ASCII characters. The first answer is stored for 24 hours, and returned to a repetition. */
  idempotencyKey?: string | undefined;
  /** Id in all logs of this command, 1-128 printable ASCII characters. Default: a random UUID. */
  requestId?: string | undefined;
  /** Your W3C trace context: with tracing on, your trace goes on in this system. An invalid one is ignored there. */
  traceparent?: string | undefined;
  /** At most 512 characters. */
  tracestate?: string | undefined;
}

/** The outcome of a call. */
export interface Called<Name extends keyof Operations> {
  result: Operations[Name]['result'];
  messageId: string;
  /** Only of `notifications.add.v1`. */
  notificationId: Name extends 'notifications.add.v1' ? string : undefined;
}

const MAX_TIMEOUT_MS = 300_000;
const MAX_PROPERTY_BYTES = 255;

/** @throws ApiError INVALID_ARGUMENT for a name that is none: the broker would return it until the deadline, as if the service were away */
export function operationOf(name: keyof Operations): Operation {
  if (!Object.hasOwn(KINDS, name)) throw new ApiError('INVALID_ARGUMENT', `${name} is not an operation.`);
  return { kind: KINDS[name], pattern: name };
}

/**
 * @returns with the body as bytes of its JSON, which stay as they are when the caller changes the body
 * @throws ApiError INVALID_ARGUMENT when an option or the body cannot be sent
 */
export function readOptions(
  { kind, pattern }: Operation,
  body: unknown,
  {
    apiKey,
    timeoutMs,
    messageId = newMessageId(),
    idempotencyKey,
    requestId = randomUUID(),
    traceparent,
    tracestate,
  }: SendOptions,
  client: { apiKey?: string; timeoutMs?: number },
) {
  const tenant = apiKey ?? client.apiKey;
  const time = timeoutMs ?? client.timeoutMs ?? 5000;
  if (typeof body !== 'object' || body === null || Array.isArray(body))
    throw refused(`The body of ${pattern} must be an object.`);
  const content = jsonOf(pattern, body);
  const most = kind === 'query' ? MAX_QUERY_BYTES : MAX_BODY_BYTES;
  if (content.length > most) throw refused(`The body of ${pattern} must be at most ${most} bytes as JSON.`);
  if (content.length > MAX_VALUES && valuesOf(content) > MAX_VALUES)
    throw refused(`The body of ${pattern} must have at most ${MAX_VALUES} values.`);
  if (!tenant) throw refused('apiKey is missing: give it to the client or to the call.');
  if (!(Number.isFinite(time) && time > 0 && time <= MAX_TIMEOUT_MS))
    throw refused(`timeoutMs must be more than 0 and at most ${MAX_TIMEOUT_MS}.`);
  if (!isText(messageId, /./s) || Buffer.byteLength(messageId) > MAX_PROPERTY_BYTES)
    throw refused('messageId must have 1 to 255 bytes.');
  if (idempotencyKey !== undefined && !isText(idempotencyKey, IDEMPOTENCY_KEY)) {
    throw refused('idempotencyKey must be 1-255 printable ASCII characters.');
  }
  if (!isText(requestId, REQUEST_ID)) throw refused('requestId must be 1-128 printable ASCII characters.');
  const trace = traceparent === undefined ? undefined : { traceparent, tracestate };
  return { content, apiKey: tenant, timeoutMs: time, messageId, idempotencyKey, requestId, trace };
}

/** JavaScript has no types, and a regular expression also takes null for a text. */
const isText = (value: unknown, form: RegExp): boolean => typeof value === 'string' && form.test(value);

/** A cycle and a BigInt have no JSON, and neither has what a `toJSON()` makes undefined. */
function jsonOf(pattern: string, body: unknown): Buffer {
  try {
    return Buffer.from(JSON.stringify(body));
  } catch (cause) {
    throw refused(`The body of ${pattern} cannot be written as JSON.`, { cause });
  }
}

const refused = (message: string, options?: ErrorOptions) => new ApiError('INVALID_ARGUMENT', message, undefined, options);
