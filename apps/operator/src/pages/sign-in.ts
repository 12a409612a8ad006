import type { FastifyInstance } from 'fastify';
import type { NestLogger } from '@app/runtime/logger';
import { field, isOnLoopback, operatorName, requireToken } from '../admission/admission';
import { Refusal } from '../admission/refusal';
import type { Sessions } from '../admission/session';
import type { OperatorToken } from '../admission/token';
import { html } from '../html/html';
import { layout } from '../html/layout';

export interface SignIn {
  token: OperatorToken;
  sessions: Sessions;
  logger: NestLogger;
}

export function signInPages(app: FastifyInstance, { token, sessions, logger }: SignIn): void {
  app.get('/sign-in', { config: { public: true } }, (_request, reply) => reply.type('text/html').send(page()));

  app.post('/sign-in', { config: { public: true } }, async (request, reply) => {
    try {
      const operator = operatorName(field(request, 'name'));
      await requireToken(token, field(request, 'token'));
      logger.log({ msg: 'an operator signed in', operator, address: request.ip });
      return await reply.header('set-cookie', sessions.begin(operator, !isOnLoopback(request))).redirect('/', 303);
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      // Not those that are refused unread: somebody who tries on and on must not fill the log.
      if (error.status === 401) logger.warn({ msg: 'a sign-in with a wrong token', address: request.ip });
      return reply.status(error.status).headers(error.headers).type('text/html').send(page(error.message));
    }
  });

  app.post('/sign-out', async (request, reply) =>
    reply.header('set-cookie', sessions.end(request.session, !isOnLoopback(request))).redirect('/sign-in', 303),
  );
}

const page = (problem?: string) =>
  layout({
    title: 'Sign in',
    path: '/sign-in',
    body: html`${problem !== undefined && html`<p class="problem" role="alert">${problem}</p>`}
      <form class="fields" method="post" action="/sign-in">
        <label for="name">Your name, for the audit</label>
        <input id="name" name="name" autocomplete="username" maxlength="100" required />
        <label for="token">Token of the operator</label>
        <input id="token" name="token" type="password" autocomplete="current-password" required />
        <button>Sign in</button>
      </form>`,
  });
