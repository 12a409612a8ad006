import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import fastify, { type FastifyError, type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify';
import type { NestLogger } from '@app/runtime/logger';
import { PROJECT_ROOT } from '@app/runtime/project-root';
import { admitOperators } from './admission/admission';
import { Refusal } from './admission/refusal';
import { Sessions } from './admission/session';
import { OperatorToken } from './admission/token';
import { html } from './html/html';
import { sendPage } from './pages/send-page';
import { signInPages } from './pages/sign-in';

/** The largest form has the ids of a page of letters. */
const FORM_BYTES = 512 * 1024;

const HEADERS = {
  'content-security-policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
  // Not no-referrer: with it browsers send forms with the origin "null".
  'referrer-policy': 'same-origin',
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'permissions-policy': 'camera=(), geolocation=(), microphone=()',
  'cache-control': 'no-store',
};

const FILES = { 'page.css': 'text/css', 'page.js': 'text/javascript', 'icon.svg': 'image/svg+xml' };

/** Creates the HTTP application with the sign-in and nothing else. It does not listen yet. */
export function createServer(token: string, logger: NestLogger): FastifyInstance {
  const app = fastify({
    bodyLimit: FORM_BYTES,
    requestTimeout: 10_000,
    // A search for letters may take a minute, and another one goes first.
    connectionTimeout: 180_000,
    forceCloseConnections: 'idle',
    // No hook runs for a path that cannot be decoded.
    frameworkErrors: (_error: unknown, _request: FastifyRequest, reply: FastifyReply) =>
      void reply.headers(HEADERS).status(404).type('text/plain').send('There is no such page.'),
  });
  const sessions = new Sessions(token);
  const operatorToken = new OperatorToken(token);

  app.addHook('onRequest', (_request, reply, done) => {
    reply.headers(HEADERS);
    done();
  });
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('application/x-www-form-urlencoded', { parseAs: 'string' }, (_request, body, done) =>
    done(null, new URLSearchParams(String(body))),
  );
  admitOperators(app, operatorToken, sessions);
  app.setNotFoundHandler(async () => {
    throw new Refusal(404, 'There is no such page.');
  });
  app.setErrorHandler<FastifyError | Refusal>((error, request, reply) => {
    const status = error instanceof Refusal ? error.status : (error.statusCode ?? 500);
    if (status >= 500 && !(error instanceof Refusal))
      logger.error({ msg: 'a request failed', path: request.routeOptions.url }, error);
    const reason =
      error instanceof Refusal || status < 500 ? error.message : 'Something failed. The log of this process has the reason.';
    if (error instanceof Refusal) reply.headers(error.headers);
    const body = html`<p class="problem" role="alert">${reason}</p>
      <p>
        ${request.session ? html`The <a href="/audit">audit</a> says what was done.` : html`<a href="/sign-in">Sign in</a>`}
      </p>`;
    return sendPage(request, reply.status(status), request.method === 'GET' ? 'Not shown' : 'Not done', body);
  });

  for (const [name, type] of Object.entries(FILES)) {
    const content = readFileSync(join(PROJECT_ROOT, 'apps/operator/public', name));
    app.get(`/${name}`, { config: { public: true } }, (_request, reply) => reply.type(type).send(content));
  }
  signInPages(app, { token: operatorToken, sessions, logger });
  return app;
}
