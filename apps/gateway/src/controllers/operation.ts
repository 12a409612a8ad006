import { applyDecorators, createParamDecorator, HttpCode, Post, type ExecutionContext } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { ApiError } from '@app/contracts/error';
import { IDEMPOTENCY_KEY } from '@app/contracts/headers';
import { parseJson } from '@app/contracts/json';
import type { Message } from '@app/contracts/message';
import { validateBody } from '@app/contracts/validate';
import type { CallOptions, RabbitClient } from '@app/rabbitmq/client/rabbit.client';
import { JSON_TYPE, resultEnvelope } from '../server/envelope';

/** A validated HTTP request: the call to make, and the reply to answer with. */
export interface Call<M = Message<object, object>> {
  message: M;
  data: M extends Message<infer Request, object> ? Request : never;
  options: CallOptions;
  reply: FastifyReply;
}

/** A method that answers POST on the path of a message with 200: what it created has no address to point to. */
export function Operation({ http, pattern }: { http?: { path: string }; pattern: string }): MethodDecorator {
  if (!http) throw new Error(`${pattern} is declared without an HTTP operation.`);
  return applyDecorators(Post(http.path), HttpCode(200));
}

/** The request to an operation, as a {@link Call}. The admission has established its caller. */
export const Called = createParamDecorator((message: Message<object, object>, context: ExecutionContext): Call => {
  const http = context.switchToHttp();
  const request = http.getRequest<FastifyRequest>();
  const body = parsedBody(request);
  const idempotencyKey = message.http?.idempotent ? idempotencyKeyOf(request) : undefined;
  return {
    message,
    data: validateBody(message.request, dataOf(body), 'data'),
    options: { ...request.caller!, ...(idempotencyKey !== undefined && { idempotencyKey }) },
    reply: http.getResponse<FastifyReply>(),
  };
});

/** Calls the service of the message, and answers with its reply. */
export async function answer<Request extends object, Result extends object>(
  rabbit: Pick<RabbitClient, 'call'>,
  { message, data, options, reply }: Omit<Call, 'message' | 'data'> & { message: Message<Request, Result>; data: Request },
): Promise<string | Buffer> {
  const { body, headers } = await rabbit.call(message, data, options);
  for (const name of Object.keys(message.replyHeaders ?? {})) {
    const value = headers[name];
    // A header holds ASCII only, an identifier any Unicode.
    if (typeof value === 'string') void reply.header(name, encodeURIComponent(value));
  }
  void reply.type(JSON_TYPE);
  return resultEnvelope(body);
}

/** Does not keep it: what the operation does not know would stay in memory until the answer. */
function parsedBody(request: FastifyRequest): unknown {
  const { body } = request;
  request.body = undefined;
  return Buffer.isBuffer(body) ? parseJson(body) : undefined;
}

/** Other keys beside `data` are ignored: clients of later versions may send them. */
function dataOf(body: unknown): unknown {
  if (typeof body === 'object' && body !== null && !Array.isArray(body)) return (body as { data?: unknown }).data;
  throw new ApiError('INVALID_ARGUMENT', 'The body must be a JSON object with the key data.');
}

function idempotencyKeyOf({ headers, raw }: FastifyRequest): string | undefined {
  const value = headers['idempotency-key'];
  if (value === undefined) return undefined;
  // Node joins headers that are sent twice: two keys would become a third one.
  const once = raw.headersDistinct['idempotency-key']?.length === 1;
  if (once && typeof value === 'string' && IDEMPOTENCY_KEY.test(value)) return value;
  throw new ApiError('INVALID_ARGUMENT', 'The header Idempotency-Key must be 1-255 printable ASCII characters, and sent once.');
}
