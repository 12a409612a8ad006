import { keptPart, type DeadLetter } from '@app/rabbitmq-admin/dead-letters/dead-letter';
import { letterData } from '@app/rabbitmq-admin/dead-letters/format';
import { printable } from '@app/rabbitmq-admin/dead-letters/printable';
import { html, type Html } from '../html/html';

/** Characters of a body, and of one header, that the page shows. */
const MOST_OF_BODY = 64 * 1024;
const MOST_OF_HEADER = 1000;
const MOST_HEADERS = 100;

/** One letter with its headers and its body. Everything in it may have been written by an attacker. */
export function letterView(letter: DeadLetter): Html {
  const { body, bodyEncoding, headers, properties, ...summary } = letterData(letter);
  const text = bodyEncoding === 'utf8' ? indented(body) : body;
  const kept = keptPart(letter);
  const notes = [
    ...(bodyEncoding === 'base64' ? ['It is not UTF-8, and is shown in Base64.'] : []),
    ...(kept ? [`Only ${kept} were kept.`] : []),
    ...(text.length > MOST_OF_BODY ? [`The first ${MOST_OF_BODY} of ${text.length} characters are shown.`] : []),
  ];
  return html`${table({ ...summary, unproved: summary.unproved.join(', ') || null })}
    <h2>Headers${letter.origin === 'unknown' && ', as any publisher may have written them'}</h2>
    ${table({ ...properties, ...headers })}
    <h2>Body</h2>
    ${notes.map((note) => html`<p class="quiet">${note}</p>`)}
    <pre role="region" tabindex="0" aria-label="Body">${text.slice(0, MOST_OF_BODY).split('\n').map(printable).join('\n')}</pre>`;
}

const table = (entries: Record<string, unknown>): Html =>
  html`<dl>
    ${Object.entries(entries)
      .filter(([, value]) => value !== undefined && value !== null)
      .slice(0, MOST_HEADERS)
      .map(
        ([name, value]) =>
          html`<dt>${shortened(name)}</dt>
            <dd>${shortened(typeof value === 'string' ? value : JSON.stringify(value))}</dd>`,
      )}
  </dl>`;

function shortened(text: string): string {
  const cut = text.length > MOST_OF_HEADER ? `${text.slice(0, MOST_OF_HEADER)}… (${text.length} characters)` : text;
  return printable(cut);
}

/** JSON in lines; other text as it is. */
function indented(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}
