import { Catch, type ArgumentsHost, type ExceptionFilter } from '@nestjs/common';
import type { FastifyReply } from 'fastify';
import { errorEnvelope, JSON_TYPE } from './envelope';
import { httpAnswerOf } from './http-error';

/** Answers with an error. What was thrown stays with the request, for its log line. */
export function sendError(reply: FastifyReply, thrown: unknown): void {
  const { status, headers, error } = httpAnswerOf(thrown);
  reply.request.failure = thrown;
  // Fastify closes the connection after a body it could not parse. The rest of it is read and dropped instead, within the request
  // timeout: a client that is still sending would not see the answer otherwise.
  if (reply.hasHeader('connection')) reply.removeHeader('connection');
  void reply
    .code(status)
    .headers(headers)
    .header('x-request-id', reply.request.id)
    .type(JSON_TYPE)
    .send(errorEnvelope(error.toBody()));
}

/** Every error that Fastify or Nest comes across ends here. */
@Catch()
export class ErrorFilter implements ExceptionFilter {
  catch(thrown: unknown, host: ArgumentsHost): void {
    sendError(host.switchToHttp().getResponse<FastifyReply>(), thrown);
  }
}
