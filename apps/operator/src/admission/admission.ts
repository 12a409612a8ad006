import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { html, type Html } from '../html/html';
import { Refusal } from './refusal';
import type { Session, Sessions } from './session';
import type { OperatorToken } from './token';

declare module 'fastify' {
  interface FastifyRequest {
    /** The signed-in operator, in every handler that is not public. */
    session: Session;
    /** Hidden field of a form on the page that answers this request. */
    form: () => Html;
  }
  interface FastifyContextConfig {
    /** Served without a session. */
    public?: boolean;
    /** Takes a form and changes nothing: it may come again, as with "Back" and a reload. */
    changesNothing?: boolean;
  }
}

/** Longest name of an operator. */
const NAME_LENGTH = 100;

/** Every route needs a session, or the token in a header, unless it is public. Every change needs a form of this session, too. */
export function admitOperators(app: FastifyInstance, token: OperatorToken, sessions: Sessions): void {
  app.decorateRequest('session', null as unknown as Session);
  app.decorateRequest('form', null as unknown as () => Html);

  app.addHook('onRequest', async (request, reply) => {
    refuseForeignOrigin(request);
    const given = bearerOf(request);
    if (given !== undefined) request.session = await sessionOfHeader(request, token, given);
    else {
      const session = sessions.find(request.headers.cookie);
      if (!session && !request.routeOptions.config.public) return signIn(request, reply);
      if (session) request.session = session;
    }
    request.form = () => html`<input type="hidden" name="form" value="${sessions.formToken(request.session)}" />`;
  });

  app.addHook('preHandler', async (request) => {
    // A header is no ambient credential: no other site can make a browser send it.
    const { public: isPublic, changesNothing } = request.routeOptions.config;
    if (isReading(request) || isPublic || changesNothing || bearerOf(request) !== undefined) return;
    const taken = sessions.takeForm(request.session, field(request, 'form'));
    if (taken === 'foreign') throw new Refusal(403, 'This form does not belong to your session. Open the page again.');
    if (taken === 'sent already')
      throw new Refusal(409, 'This form was sent already, and is not executed again. Open the page again.');
  });
}

/** First value of a field of the form; empty when it is absent. */
export const field = (request: FastifyRequest, name: string): string => fields(request).get(name) ?? '';
export const fields = (request: FastifyRequest): URLSearchParams =>
  request.body instanceof URLSearchParams ? request.body : new URLSearchParams();

/** Whether a browser may keep the cookie on a plain connection: on the loopback address nobody can listen. */
export const isOnLoopback = ({ hostname }: FastifyRequest): boolean => /^(localhost|127\.0\.0\.1|\[::1\])$/.test(hostname);

/** The name as it is signed and audited. @throws Refusal */
export function operatorName(given: string): string {
  const name = given.trim();
  // eslint-disable-next-line no-control-regex -- control characters would change how the audit reads
  if (name === '' || name.length > NAME_LENGTH || /[\u0000-\u001f\u007f-\u009f\u2028-\u202e\u2066-\u2069]/.test(name))
    throw new Refusal(400, `Your name is needed for the audit: up to ${NAME_LENGTH} characters.`);
  return name;
}

/** Not the password of a proxy in front, which a browser sends by itself in the same header. */
const bearerOf = ({ headers }: FastifyRequest): string | undefined => /^Bearer (.+)$/i.exec(headers.authorization ?? '')?.[1];

async function sessionOfHeader({ headers }: FastifyRequest, token: OperatorToken, given: string): Promise<Session> {
  await requireToken(token, given);
  const name = headers['x-operator'];
  return { operator: operatorName(typeof name === 'string' ? name : 'header'), id: 'header' };
}

/** @throws Refusal */
export async function requireToken(token: OperatorToken, given: string): Promise<void> {
  const verdict = await token.check(given);
  if (verdict === true) return;
  if (verdict === false) throw new Refusal(401, 'This is not the token.');
  throw new Refusal(429, `Too many wrong tokens. Try again in ${verdict.retryAfter} s.`, {
    'retry-after': String(verdict.retryAfter),
  });
}

const isReading = ({ method }: FastifyRequest): boolean => method === 'GET' || method === 'HEAD';

/** A browser names the page that sends a form. */
function refuseForeignOrigin(request: FastifyRequest): void {
  const { headers } = request;
  if (isReading(request) || bearerOf(request) !== undefined) return;
  const { origin, host, 'sec-fetch-site': site } = headers;
  const isOwn = origin !== undefined && host !== undefined && URL.canParse(origin) && new URL(origin).host === host;
  if (!isOwn || (site !== undefined && site !== 'same-origin'))
    throw new Refusal(403, 'This request comes from another site. Behind a proxy, the header Host must be passed on unchanged.');
}

async function signIn(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
  if (request.method === 'GET' && request.headers['sec-fetch-dest'] !== 'empty')
    return reply.redirect(request.url === '/' ? '/sign-in' : `/sign-in?to=${encodeURIComponent(request.url)}`, 303);
  throw new Refusal(401, 'Sign in first.');
}
