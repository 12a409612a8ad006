import type { FastifyInstance } from 'fastify';
import type { NestLogger } from '@app/runtime/logger';
import { field, isOnLoopback, operatorName, requireToken } from '../admission/admission';
import { Refusal } from '../admission/refusal';
import type { Sessions } from '../admission/session';
import type { OperatorToken } from '../admission/token';
import { html, type Html } from '../html/html';
import { sendPage } from './send-page';

/** A path of this server. Browsers take `//host`, `/\\host` and the like for other servers. */
const OWN_PAGE = /^\/[\w-][\w./?=&%+~!'()*-]*$/;

export interface SignIn {
  token: OperatorToken;
  sessions: Sessions;
  logger: NestLogger;
}

export function signInPages(app: FastifyInstance, { token, sessions, logger }: SignIn): void {
  app.get<{ Querystring: { to?: string } }>('/sign-in', { config: { public: true } }, (request, reply) =>
    sendPage(request, reply, 'Sign in', form({ to: String(request.query.to ?? '') })),
  );

  app.post('/sign-in', { config: { public: true } }, async (request, reply) => {
    try {
      const operator = operatorName(field(request, 'name'));
      await requireToken(token, field(request, 'token'));
      logger.log({ msg: 'an operator signed in', operator, address: request.ip });
      const to = field(request, 'to');
      const session = sessions.begin(operator, !isOnLoopback(request));
      return await reply.header('set-cookie', session).redirect(OWN_PAGE.test(to) ? to : '/', 303);
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      // Not those that are refused unread: somebody who tries on and on must not fill the log.
      if (error.status === 401) logger.warn({ msg: 'a sign-in with a wrong token', address: request.ip });
      const again = form({ to: field(request, 'to'), name: field(request, 'name'), problem: error });
      return sendPage(request, reply.status(error.status).headers(error.headers), 'Sign in', again);
    }
  });

  app.post('/sign-out', async (request, reply) =>
    reply.header('set-cookie', sessions.end(request.session, !isOnLoopback(request))).redirect('/sign-in', 303),
  );
}

/** After a problem the reader is at the field that has it. */
function form({ to, name = '', problem }: { to: string; name?: string; problem?: Refusal }): Html {
  const hint = (isWrong: boolean) => isWrong && html`autofocus aria-invalid="true" aria-describedby="problem"`;
  const isOfName = problem?.status === 400;
  return html`${problem && html`<p id="problem" class="problem" role="alert">${problem.message}</p>`}
    <form class="fields" method="post" action="/sign-in">
      <input type="hidden" name="to" value="${to}" />
      <label for="name">Your name, for the audit</label>
      <input id="name" name="name" value="${name}" autocomplete="username" maxlength="100" required ${hint(isOfName)} />
      <label for="token">Token of the operator</label>
      <input
        id="token"
        name="token"
        type="password"
        autocomplete="current-password"
        required
        ${hint(problem !== undefined && !isOfName)}
      />
      <button>Sign in</button>
    </form>`;
}
