import type { Message } from 'amqplib';
import { ApiError, ERROR_STATUSES, type ErrorBody, type ErrorStatus, type FieldProblem } from '@app/contracts/error';
import { HEADER } from './headers';
import { pack, unpack } from './packed';
import { JsonBytes, Reply } from './reply';
import type { Properties } from './write-message';

/** A reply for publishing. The header `x-status` is `OK` or the status of the error; the body is the result or the error as JSON. */
export interface EncodedReply {
  status: 'OK' | ErrorStatus;
  body: Buffer;
  properties: Pick<Properties, 'contentType' | 'persistent' | 'headers'>;
}

/** @throws TypeError when the result is not JSON */
export function encodeReply(reply: { result: unknown } | { error: ErrorBody }): EncodedReply {
  if ('error' in reply) return encode(reply.error.status, reply.error);
  const answer: Reply<unknown> = reply.result instanceof Reply ? reply.result : new Reply(reply.result);
  return encode('OK', answer.result, answer.headers);
}

function encode(status: EncodedReply['status'], value: unknown, headers?: Reply<unknown>['headers']): EncodedReply {
  return {
    status,
    body: value instanceof JsonBytes ? value.bytes : Buffer.from(JSON.stringify(value ?? null)),
    properties: {
      contentType: 'application/json',
      persistent: false,
      headers: Object.assign({}, headers, { [HEADER.status]: status }),
    },
  };
}

/** A received reply, alone or from a batch. */
export interface ReceivedReply {
  content: Buffer;
  headers: Readonly<Record<string, unknown>>;
}

/** AMQP `type` of a message that holds several replies. */
export const BATCH_TYPE = 'replies';

/** More replies than any service sends in one message. */
const MOST_REPLIES = 100_000;

/** Encodes several replies as one message, for a caller that can read it (header `x-reply-batches`). */
export function encodeBatch(replies: readonly { correlationId: string; reply: EncodedReply }[]): Buffer {
  return pack(replies.map(({ correlationId, reply }) => ({ head: [correlationId, reply.properties.headers], body: reply.body })));
}

/** The replies in a message. @throws Unreadable */
export function repliesIn({ content, properties }: Message): { correlationId: string; reply: ReceivedReply }[] {
  if (properties.type !== BATCH_TYPE)
    return [{ correlationId: String(properties.correlationId), reply: { content, headers: properties.headers ?? {} } }];
  return unpack(content, MOST_REPLIES).map(({ head: [correlationId, headers], body }) => ({
    correlationId: String(correlationId),
    reply: { content: body, headers: headers as Record<string, unknown> },
  }));
}

/** A successful reply. */
export class Answer<Res> {
  constructor(
    /** The JSON body as it was received. */
    readonly body: Buffer,
    readonly headers: Readonly<Record<string, unknown>>,
  ) {}

  /** @throws ApiError INTERNAL when the body is not JSON */
  parse(): Res {
    try {
      return JSON.parse(this.body.toString()) as Res;
    } catch {
      throw unreadable();
    }
  }
}

/** @throws ApiError the replied error; INTERNAL when the reply is invalid */
export function decodeReply<Res>({ content, headers }: ReceivedReply): Answer<Res> {
  const status: unknown = headers[HEADER.status];
  if (status === 'OK') return new Answer<Res>(content, headers);
  throw (ERROR_STATUSES as readonly unknown[]).includes(status) ? decodeError(status as ErrorStatus, content) : unreadable();
}

function decodeError(status: ErrorStatus, content: Buffer): ApiError {
  let body: unknown;
  try {
    body = JSON.parse(content.toString());
  } catch {
    return unreadable();
  }
  const { message, details } = (body ?? {}) as { message?: unknown; details?: unknown };
  if (typeof message !== 'string') return unreadable();
  return new ApiError(status, message, Array.isArray(details) ? details.filter(isFieldProblem).slice(0, 20) : undefined);
}

const isFieldProblem = (value: unknown): value is FieldProblem =>
  typeof (value as FieldProblem | null)?.field === 'string' && typeof (value as FieldProblem).message === 'string';

const unreadable = () => new ApiError('INTERNAL', 'The service gave an answer that cannot be read.');
