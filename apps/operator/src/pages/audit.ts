import type { FastifyInstance } from 'fastify';
import { reasonOf } from '@app/postgres/errors';
import { Refusal } from '../admission/refusal';
import type { AuditLine, AuditRepository } from '../db/audit.repository';
import { time } from '../html/format';
import { html, type Html } from '../html/html';
import { tableOf } from '../html/table';
import { sendPage } from './send-page';

const LINES = 100;

export function auditPages(app: FastifyInstance, audit: AuditRepository): void {
  app.get<{ Querystring: { before?: string } }>('/audit', async (request, reply) => {
    const { before } = request.query;
    if (before !== undefined && !/^\d{1,18}$/.test(before)) throw new Refusal(400, 'This is not a line of the audit.');
    const found = await read(audit.page(LINES + 1, before));
    const lines = found.slice(0, LINES);
    const body = [
      lines.length > 0
        ? table(lines)
        : html`<p>
            ${before === undefined ? 'Nobody has changed anything or read a letter on these pages yet.' : 'There are no older lines.'}
          </p>`,
      before !== undefined && html`<p><a href="/audit">Newest lines</a></p>`,
      found.length > LINES && html`<p><a href="/audit?before=${lines.at(-1)?.seq}">Older lines</a></p>`,
    ];
    return sendPage(request, reply, 'Audit', body);
  });

  app.get<{ Params: { batch: string } }>('/audit/:batch', async (request, reply) => {
    const { batch } = request.params;
    const lines = /^[\da-f-]{36}$/.test(batch) ? await read(audit.batch(batch)) : [];
    if (lines.length === 0) throw new Refusal(404, 'The audit has no such lines.');
    return sendPage(request, reply, 'Outcome', [lines.length > 1 && summary(lines), table(lines)]);
  });
}

const read = <T>(lines: Promise<T>): Promise<T> =>
  lines.catch((error: unknown) => {
    throw new Refusal(503, `The audit cannot be read (${reasonOf(error)}).`);
  });

/** How many lines have each outcome, without its reason. */
function summary(lines: readonly AuditLine[]): Html {
  const counts = new Map<string, number>();
  for (const { outcome } of lines) {
    const [word = ''] = outcome?.split(/[:,]/) ?? ['not known'];
    counts.set(word, (counts.get(word) ?? 0) + 1);
  }
  return html`<p>${[...counts].map(([word, count]) => `${count} ${word}`).join(', ')}.</p>`;
}

const table = (lines: readonly AuditLine[]): Html =>
  html`<div class="table" role="region" aria-label="Lines of the audit" tabindex="0">
    ${tableOf(
      ['When', 'Who', 'From', 'Action', 'On', 'Detail', 'Outcome'],
      lines.map(
        (line) =>
          html`<tr>
            <td>${time(line.begunAt)}</td>
            <td class="wrap">${line.operator}</td>
            <td>${line.address}</td>
            <td>${line.action}</td>
            <td class="wrap">${line.target}</td>
            <td class="wrap">${line.detail}</td>
            <td class="wrap">${line.outcome ?? 'begun; it is not known whether it was done'}</td>
          </tr>`,
      ),
    )}
  </div>`;
