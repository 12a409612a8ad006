import { Controller, HttpCode, Post, Req, Res } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { HTTP_MESSAGES } from '@app/contracts/all-messages';
import { ApiError } from '@app/contracts/error';
import { IDEMPOTENCY_KEY } from '@app/contracts/headers';
import { parseJson } from '@app/contracts/json';
import type { Message } from '@app/contracts/message';
import { validateBody } from '@app/contracts/validate';
import { RabbitClient, type CallOptions } from '@app/rabbitmq/client/rabbit.client';
import { messageOf } from '../admission/kinds';
import { JSON_TYPE, resultEnvelope } from '../server/envelope';

/** Every operation of the API: POST on the path of a message calls the service of the message, and answers with its reply. */
@Controller()
export class OperationsController {
  constructor(private readonly rabbit: RabbitClient) {}

  /** Answers with 200, because an entry has no address that 201 could name. */
  @Post(HTTP_MESSAGES.map(({ http }) => http.path))
  @HttpCode(200)
  async answer(@Req() request: FastifyRequest, @Res({ passthrough: true }) reply: FastifyReply): Promise<string | Buffer> {
    const message = messageOf(request.routeOptions.url)!;
    const { body, headers } = await this.rabbit.call(message, ...validated(message, request));
    for (const name of Object.keys(message.replyHeaders ?? {})) {
      const value = headers[name];
      // A header holds ASCII only, an identifier any Unicode.
      if (typeof value === 'string') void reply.header(name, encodeURIComponent(value));
    }
    void reply.type(JSON_TYPE);
    return resultEnvelope(body);
  }
}

/** Data and options of the call. The admission has established the caller. */
function validated(message: Message<object, object>, request: FastifyRequest): [object, CallOptions] {
  const body = parsedBody(request);
  const idempotencyKey = message.http?.idempotent ? idempotencyKeyOf(request) : undefined;
  return [
    validateBody(message.request, dataOf(body), 'data'),
    { ...request.caller!, ...(idempotencyKey !== undefined && { idempotencyKey }) },
  ];
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
