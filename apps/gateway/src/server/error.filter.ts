import { Catch, type ArgumentsHost, type ExceptionFilter } from '@nestjs/common';
import type { FastifyReply } from 'fastify';
import { errorEnvelope, JSON_TYPE } from './envelope';
import { httpAnswerOf } from './http-error';
import { countError } from './metrics';

/** Answers with an error. The thrown value is stored in the request, for its log line. */
export function sendError(reply: FastifyReply, thrown: unknown): void {
  const { status, headers, error } = httpAnswerOf(thrown);
  reply.request.failure = thrown;
  reply.request.errorStatus = error.status;
  const { raw, routeOptions } = reply.request;
  // Nobody gets an answer to a request that ended with its connection.
  if (raw.complete || !raw.socket.destroyed) countError(routeOptions.url ?? 'unknown', error.status);
  // Fastify would close the connection after a body that it cannot parse. Instead the rest is read and dropped, within the request timeout:
  // otherwise a client that is still sending would not see the answer. Small pieces of it are read slowly.
  if (reply.hasHeader('connection')) reply.removeHeader('connection');
  void reply
    .code(status)
    .headers(headers)
    .header('x-request-id', reply.request.id)
    .type(JSON_TYPE)
    .send(errorEnvelope(error.toBody()));
}

/** Handles every error of Fastify and Nest. */
@Catch()
export class ErrorFilter implements ExceptionFilter {
  catch(thrown: unknown, host: ArgumentsHost): void {
    sendError(host.switchToHttp().getResponse<FastifyReply>(), thrown);
  }
}
