import type { FastifyInstance, FastifyRequest } from 'fastify';
import { LETTER_QUEUES, type LetterQueue } from '@app/rabbitmq-admin/dead-letters/letter-queue';
import { counted } from '@app/runtime/counted';
import { AuditedForm } from '../actions/audited';
import { idOf, MOST_LETTERS, type LetterList, type Letters, type ListedLetter } from '../actions/letters';
import { field, fields } from '../admission/admission';
import { Refusal } from '../admission/refusal';
import type { AuditRepository } from '../db/audit.repository';
import { number, time } from '../html/format';
import { html, type Html } from '../html/html';
import { ofFigures, tableOf } from '../html/table';
import { letterView } from './letter-view';
import { sendPage } from './send-page';

const ACTIONS = {
  replay: {
    verb: 'Replay',
    effect:
      'Each letter is published again to its service, with the rights of its publisher. One that cannot be replayed is kept. A command that was executed before may overwrite later changes. If that was more than a day ago, it also deletes, removes or erases what is there now, and stores a deleted notification again.',
  },
  drop: { verb: 'Drop', effect: 'Each letter is deleted for ever.' },
} as const;

const MEANINGS: Record<LetterQueue['kind'], string> = {
  dead: 'given up after retries',
  crashed: 'crashed their consumers',
  refused: 'refused because of their content or a missing right',
};

export function lettersPages(app: FastifyInstance, letters: Letters, audit: AuditRepository): void {
  app.get('/letters', async (request, reply) => sendPage(request, reply, 'Dead letters', queues(await letters.counts())));

  app.get<{ Params: { queue: string } }>('/letters/:queue', async (request, reply) => {
    const queue = queueOf(request.params.queue);
    return sendPage(request, reply, queue.name, list(queue, await letters.list(queue)));
  });

  app.get<{ Params: { queue: string }; Querystring: { letter?: string } }>('/letters/:queue/letter', async (request, reply) => {
    const queue = queueOf(request.params.queue);
    const mark = String(request.query.letter);
    const letter = await letters.read(queue, mark, new AuditedForm(audit, request, 'read letter'));
    const body = [
      letterView(letter),
      html`<form method="post" action="/letters/${queue.name}/confirm">
          <input type="hidden" name="letter" value="${mark}" />${buttons()}
        </form>
        <p><a href="/letters/${queue.name}">All letters of ${queue.name}</a></p>`,
    ];
    return sendPage(request, reply, 'A dead letter', body);
  });

  app.post<{ Params: { queue: string } }>(
    '/letters/:queue/confirm',
    { config: { changesNothing: true } },
    async (request, reply) => {
      const queue = queueOf(request.params.queue);
      const body = confirmation(queue, actionOf(request), marksOf(request), request.form());
      return sendPage(request, reply, 'Are you sure?', body);
    },
  );

  app.post<{ Params: { queue: string } }>('/letters/:queue/act', async (request, reply) => {
    const queue = queueOf(request.params.queue);
    const action = actionOf(request);
    const form = new AuditedForm(audit, request, `${action} letter`);
    await letters.act(action, queue, new Set(marksOf(request)), form);
    return reply.redirect(`/audit/${form.batch}`, 303);
  });
}

function queueOf(name: string): LetterQueue {
  const queue = LETTER_QUEUES.find((one) => one.name === name);
  if (!queue) throw new Refusal(404, 'There is no such queue of letters.');
  return queue;
}

function actionOf(request: FastifyRequest): keyof typeof ACTIONS {
  const action = field(request, 'action');
  if (action === 'replay' || action === 'drop') return action;
  throw new Refusal(400, 'Choose what to do with the letters.');
}

function marksOf(request: FastifyRequest): string[] {
  const marks = [...new Set(fields(request).getAll('letter'))];
  if (marks.length === 0) throw new Refusal(400, 'Choose at least one letter.');
  if (marks.length > MOST_LETTERS) throw new Refusal(400, `Choose at most ${MOST_LETTERS} letters.`);
  return marks;
}

const queues = (counts: readonly { queue: LetterQueue; count: number }[]) =>
  html`<p>A letter is a command or event that was given up and waits for an operator.</p>
    <ul>
      ${counts.map(
        ({ queue: { name, kind }, count }) =>
          html`<li>
            <a href="/letters/${name}">${name}</a>: <strong>${number(count)}</strong> <span class="quiet">${MEANINGS[kind]}</span>
          </li>`,
      )}
    </ul>`;

const buttons = () =>
  html`<div class="row">
    <button name="action" value="replay">Replay…</button>
    <button name="action" value="drop" class="danger">Drop…</button>
  </div>`;

const COLUMNS = [
  html`<th scope="col"><input type="checkbox" data-all aria-label="All letters" hidden /></th>`,
  ...['Id', 'Operation', 'Status', 'Reason', 'API key', 'Publisher', ofFigures('Tries'), 'First failed', 'Request'],
  ofFigures('Bytes'),
];

function list(queue: LetterQueue, { letters, total }: LetterList): Html {
  if (total === 0) return html`<p class="fine">No letter waits here.</p>`;
  return html`<form method="post" action="/letters/${queue.name}/confirm">
    <p>
      ${
        letters.length < total
          ? `The first ${letters.length} of ${number(total)} letters. Use "npm run dead-letters" for conditions, and for the others.`
          : `${counted(letters.length, 'letter')}.`
      }
      A question mark is behind what is not proved.
    </p>
    <div class="table" role="region" aria-label="Letters" tabindex="0">
      ${tableOf(
        COLUMNS,
        letters.map((letter) => row(queue, letter)),
      )}
    </div>
    ${buttons()}
  </form>`;
}

function row(queue: LetterQueue, letter: ListedLetter): Html {
  const doubt = (claim: ListedLetter['unproved'][number]) => letter.unproved.includes(claim) && '?';
  return html`<tr>
    <td><input type="checkbox" name="letter" value="${letter.mark}" aria-label="Letter ${letter.id}" /></td>
    <td class="wrap"><a href="/letters/${queue.name}/letter?letter=${encodeURIComponent(letter.mark)}">${letter.id}</a></td>
    <td>${letter.operation ?? '–'}${doubt('operation')}</td>
    <td>${letter.status}${doubt('status')}</td>
    <td class="wrap">${letter.reason}${doubt('reason')}</td>
    <td class="wrap">${letter.apiKey ?? '–'}</td>
    <td class="wrap">${letter.origin === 'unknown' ? 'origin unknown' : (letter.account ?? 'none')}</td>
    <td class="number">${letter.attempts ?? '–'}${doubt('attempts')}</td>
    <td>${letter.firstFailedAt ? time(letter.firstFailedAt) : '–'}${doubt('firstFailedAt')}</td>
    <td class="wrap">${letter.requestId ?? '–'}</td>
    <td class="number">${number(letter.size)}</td>
  </tr>`;
}

function confirmation(queue: LetterQueue, action: keyof typeof ACTIONS, marks: readonly string[], form: Html): Html {
  const { verb, effect } = ACTIONS[action];
  return html`<p class="notice">${effect}</p>
    <p>${verb} ${marks.length === 1 ? 'this letter' : `these ${marks.length} letters`} of ${queue.name}:</p>
    <ul>
      ${marks.map((mark) => html`<li class="wrap">${idOf(mark)}</li>`)}
    </ul>
    <form method="post" action="/letters/${queue.name}/act">
      ${form}${marks.map((mark) => html`<input type="hidden" name="letter" value="${mark}" />`)}
      <div class="row">
        <button name="action" value="${action}" class="${action === 'drop' && 'danger'}">${verb}</button>
        <a class="button" href="/letters/${queue.name}">Back</a>
      </div>
    </form>`;
}
