import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Part } from '../html/html';
import { layout } from '../html/layout';

/** The session is absent before the sign-in. */
type Request = Pick<FastifyRequest, 'form' | 'routeOptions'> & { session?: FastifyRequest['session'] | null };

/**
 * Answers with a page.
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
  const signedIn = session ? { operator: session.operator, form: form() } : {};
  return reply.type('text/html').send(layout({ title, body, isLive, path: routeOptions.url ?? '', ...signedIn }));
}
