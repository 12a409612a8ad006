import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { ListedKey } from '@app/api-keys/api-keys.repository';
import { identifierProblem } from '@app/contracts/fields';
import { reasonOf, sqlState } from '@app/postgres/errors';
import { AuditedForm } from '../actions/audited';
import { MOST_KEYS, type Keys, type Secret } from '../actions/keys';
import { field } from '../admission/admission';
import { Refusal } from '../admission/refusal';
import type { AuditRepository } from '../db/audit.repository';
import { time } from '../html/format';
import { html, type Html } from '../html/html';
import { tableOf } from '../html/table';
import { ACTIONS, actionForms, DURATION, type KeyAction } from './key-actions';
import { sendPage } from './send-page';

type KeyRoute = { Params: { key: string } };

export function keysPages(app: FastifyInstance, keys: Keys, audit: AuditRepository): void {
  app.get<{ Querystring: { text?: string } }>('/keys', async (request, reply) => {
    const text = String(request.query.text ?? '').replaceAll('\0', '');
    const listed = await fromDatabase(keys.list(text));
    return sendPage(request, reply, 'API keys', [search(text), list(listed), createForm(request.form())]);
  });

  app.post('/keys', async (request, reply) => {
    const form = new AuditedForm(audit, request, 'create key');
    const secret = await fromDatabase(keys.create(form, field(request, 'name'), field(request, 'expires-in')));
    return sendPage(request, reply, 'A new API key', secretView(secret));
  });

  app.get<KeyRoute>('/keys/:key', async (request, reply) => {
    const listed = await fromDatabase(keys.find(keyOf(request)));
    return sendPage(request, reply, listed.name || listed.key, keyView(listed));
  });

  app.post<KeyRoute>('/keys/:key/confirm', { config: { changesNothing: true } }, (request, reply) => {
    const body = confirmation(keyOf(request), actionOf(request), request);
    return sendPage(request, reply, 'Are you sure?', body);
  });

  app.post<KeyRoute>('/keys/:key/act', async (request, reply) => {
    const action = actionOf(request);
    const form = new AuditedForm(audit, request, `${action} key`);
    const secret = await fromDatabase(
      ACTIONS[action].act(keys, form, keyOf(request), field(request, ACTIONS[action].field ?? '')),
    );
    if (!secret) return reply.redirect(`/audit/${form.batch}`, 303);
    return sendPage(request, reply, 'A new token', secretView(secret));
  });
}

function keyOf({ params }: FastifyRequest<KeyRoute>): string {
  if (identifierProblem(params.key)) throw new Refusal(404, 'There is no such API key.');
  return params.key;
}

function actionOf(request: FastifyRequest<KeyRoute>): KeyAction {
  const action = field(request, 'action');
  if (Object.hasOwn(ACTIONS, action)) return action as KeyAction;
  throw new Refusal(400, 'Choose what to do with the key.');
}

const fromDatabase = <T>(work: Promise<T>): Promise<T> =>
  work.catch((error: unknown) => {
    if (error instanceof Refusal) throw error;
    const isMissing = sqlState(error) === '42P01';
    throw new Refusal(
      503,
      isMissing
        ? 'The schema of the users service is missing: run "npm run setup".'
        : `The database cannot be used (${reasonOf(error)}).`,
    );
  });

const search = (text: string) =>
  html`<form class="row" method="get" action="/keys" role="search">
    <span
      ><label for="text">Part of a key or name</label><br /><input id="text" name="text" type="search" value="${text}"
    /></span>
    <button>Search</button>
  </form>`;

function list(keys: readonly ListedKey[]): Html {
  if (keys.length === 0) return html`<p>No API key was found.</p>`;
  return html`<p>${keys.length === MOST_KEYS && `The oldest ${MOST_KEYS} keys. Search for the others.`}</p>
    <div class="table" role="region" aria-label="API keys" tabindex="0">
      ${tableOf(
        ['Key', 'Name', 'State', 'Live tokens', 'Publishers', 'Created'],
        keys.map(
          (key) =>
            html`<tr>
              <th scope="row" class="wrap"><a href="/keys/${encodeURIComponent(key.key)}">${key.key}</a></th>
              <td class="wrap">${key.name}</td>
              <td>${stateOf(key)}</td>
              <td class="number">${key.tokens.length}</td>
              <td class="wrap">${key.publishers.join(', ')}</td>
              <td>${time(key.createdAt)}</td>
            </tr>`,
        ),
      )}
    </div>`;
}

const stateOf = ({ disabled }: ListedKey) =>
  disabled ? html`<span class="state bad">disabled</span>` : html`<span class="state good">enabled</span>`;

const createForm = (form: Html) =>
  html`<h2>A new key</h2>
    <form class="fields" method="post" action="/keys">
      ${form}
      <label for="name">Name of the tenant</label><input id="name" name="name" maxlength="256" />
      <label for="expires-in">Life of its token, such as 90d; empty: without end</label
      ><input id="expires-in" name="expires-in" ${DURATION} />
      <button>Create</button>
    </form>`;

const secretView = ({ key, token, tokenId, expiresAt }: Secret) =>
  html`<p class="notice">The token is shown this once, and is not stored. Copy it now.</p>
    <dl>
      <dt>API key</dt>
      <dd class="secret">${key}</dd>
      <dt>Token</dt>
      <dd class="secret" id="secret">${token}</dd>
      <dt>Id of the token</dt>
      <dd>${tokenId}</dd>
      <dt>Expires</dt>
      <dd>${expiresAt ? time(expiresAt) : 'never'}</dd>
    </dl>
    <p><a href="/keys/${encodeURIComponent(key)}">The key</a></p>`;

function keyView(listed: ListedKey): Html {
  const { key, name, tokens, publishers, createdAt } = listed;
  return html`<dl>
      <dt>API key</dt>
      <dd>${key}</dd>
      <dt>Name</dt>
      <dd>${name}</dd>
      <dt>State</dt>
      <dd>${stateOf(listed)}</dd>
      <dt>Created</dt>
      <dd>${time(createdAt)}</dd>
      <dt>Live tokens</dt>
      <dd>
        <ul>
          ${tokens.map(({ id, createdAt: since, expiresAt }) => html`<li>${id}, created ${time(since)}, ${expiresAt ? `expires ${time(expiresAt)}` : 'does not expire'}</li>`)}
        </ul>
      </dd>
      <dt>Publishers</dt>
      <dd>${publishers.join(', ') || 'none'}</dd>
    </dl>
    <h2>Change it</h2>
    ${actionForms(listed)}
    <p><a href="/keys">All keys</a></p>`;
}

function confirmation(key: string, action: KeyAction, request: FastifyRequest<KeyRoute>): Html {
  const { verb, effect, field: name } = ACTIONS[action];
  const value = name === undefined ? undefined : field(request, name);
  return html`<p class="notice">${effect}</p>
    <p>${verb}: ${key}${value !== undefined && value !== '' && ` (${value})`}</p>
    <form class="row" method="post" action="/keys/${encodeURIComponent(key)}/act">
      ${request.form()}${name !== undefined && html`<input type="hidden" name="${name}" value="${value}" />`}
      <button name="action" value="${action}" class="danger">${verb}</button>
      <a class="button" href="/keys/${encodeURIComponent(key)}">Back</a>
    </form>`;
}
