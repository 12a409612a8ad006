import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Part } from '../html/html';
import { layout } from '../html/layout';

type Request = Pick<FastifyRequest, 'session' | 'form' | 'routeOptions'>;

/**
 * Answers a signed-in operator.
 *
 * @param isLive whether the script goes on replacing the live parts
 */
export function sendPage(
  request: Request,
  reply: FastifyReply,
  title: string,
  body: Part,
  { isLive = false } = {},
): FastifyReply {
  const { session, form, routeOptions } = request;
  const page = { title, body, isLive, path: routeOptions.url ?? '', operator: session.operator, form: form() };
  return reply.type('text/html').send(layout(page));
}
