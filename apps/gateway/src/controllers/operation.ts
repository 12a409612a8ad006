import { applyDecorators, Body, createParamDecorator, HttpCode, Post, type ExecutionContext } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { ApiError } from '@app/contracts/error';
import { IDEMPOTENCY_KEY } from '@app/contracts/headers';
import type { BodyClass } from '@app/contracts/message';
import { validateBody } from '@app/contracts/validate';
import type { Answer } from '@app/rabbitmq/client/rabbit.client';
import { JSON_TYPE, resultEnvelope } from '../server/envelope';

const NOTIFICATION_ID = 'x-notification-id';

const requestOf = (context: ExecutionContext) => context.switchToHttp().getRequest<FastifyRequest>();

/** A method that answers POST on the path as 200: what it created has no address to point to. */
export const Operation = (path: string) => applyDecorators(Post(path), HttpCode(200));

/** Answers with what a service replied. */
export function resultOf({ json, headers }: Answer<unknown>, reply: FastifyReply): string {
  const notificationId = headers[NOTIFICATION_ID];
  // A header holds ASCII only, an identifier any Unicode.
  if (typeof notificationId === 'string') void reply.header(NOTIFICATION_ID, encodeURIComponent(notificationId));
  void reply.type(JSON_TYPE);
  return resultEnvelope(json);
}

/** The validated `data` of the body. */
export const Data = <T extends object>(type: BodyClass<T>): ParameterDecorator =>
  Body({ transform: (body: unknown) => validateBody(type, dataOf(body), 'data') });

/** Other keys beside `data` are ignored: clients of later versions may send them. */
function dataOf(body: unknown): unknown {
  if (typeof body === 'object' && body !== null && !Array.isArray(body)) return (body as { data?: unknown }).data;
  throw new ApiError('INVALID_ARGUMENT', 'The body must be a JSON object with the key data.');
}

/** Who calls, as the admission has established it: the options of the call to the service. */
export const Caller = createParamDecorator((_: unknown, context: ExecutionContext) => requestOf(context).caller);

/** The header `Idempotency-Key`, or undefined. */
export const IdempotencyKey = createParamDecorator((_: unknown, context: ExecutionContext) => {
  const request = requestOf(context);
  const value = request.headers['idempotency-key'];
  if (value === undefined) return undefined;
  // Node joins headers that are sent twice: two keys would become a third one.
  const once = request.raw.headersDistinct['idempotency-key']?.length === 1;
  if (once && typeof value === 'string' && IDEMPOTENCY_KEY.test(value)) return value;
  throw new ApiError('INVALID_ARGUMENT', 'The header Idempotency-Key must be 1-255 printable ASCII characters, and sent once.');
});
