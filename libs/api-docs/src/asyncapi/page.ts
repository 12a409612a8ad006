import type { asyncApiDocument } from './document';
import type { MessageObject, Ref } from './messages';
import { schemaRows } from './schema-rows';
import { MESSAGES_STYLE } from './style';

type Document = ReturnType<typeof asyncApiDocument>;
type Operation = Document['operations'][string];

const KINDS = [
  {
    tag: 'command',
    title: 'Commands',
    about: 'Commands change something. They are published as persistent messages. A redelivered command takes effect only once.',
  },
  {
    tag: 'query',
    title: 'Queries',
    about: 'Queries only read. They have separate queues, so that a backlog of commands cannot delay them.',
  },
  {
    tag: 'event',
    title: 'Events',
    about: 'Events are published with or without listeners, as CloudEvents 1.0 in structured mode.',
  },
] as const;

/**
 * The document as an HTML page: complete and without scripts, so that it can be read, searched and printed anywhere.
 *
 * @returns HTML that refers to nothing on other hosts
 */
export function messagesPage(document: Document): string {
  const { info, components } = document;
  const operations = Object.values(document.operations);
  const kinds = KINDS.map((kind) => ({ ...kind, found: operations.filter((operation) => hasTag(operation, kind.tag)) }));
  return `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8" />
    <meta name="viewport" content="width=device-width, initial-scale=1" />
    <title>${escaped(info.title)}</title>
    <link rel="icon" type="image/png" href="/docs/favicon-32x32.png" />
    <style>
${MESSAGES_STYLE}    </style>
  </head>
  <body>
    <nav><a href="/docs">HTTP API</a> <b>Messages</b> <a href="#contents">Contents</a> <a href="/asyncapi.json">asyncapi.json</a></nav>
    <main>
      <h1>${escaped(info.title)}</h1>
      ${prose(info.description)}
      ${prose(components.securitySchemes.account.description)}
      <div id="contents">${kinds.map(({ title, found }) => `<h2>${title}</h2>${contents(found)}`).join('\n')}</div>
      <p>Also: <a href="#errors">errors</a>, <a href="#queues">queues and dead letters</a>.</p>
      ${kinds.map(({ title, about, found }) => `<h2 class="part">${title}</h2><p>${about}</p>${found.map((operation) => article(operation, document)).join('\n')}`).join('\n')}
      <h2 class="part" id="errors">Errors</h2>${errors(document)}
      <h2 class="part" id="queues">Queues and dead letters</h2>${queues(document)}
    </main>
  </body>
</html>
`;
}

const hasTag = ({ tags }: { tags: { name: string }[] }, wanted: string) => tags.some(({ name }) => name === wanted);

/** Table of contents: each operation with the first sentence of its purpose. */
const contents = (operations: Operation[]) =>
  `<div class="contents">${table(
    ['Message', 'Service', 'Purpose'],
    operations.map(({ title, tags, summary }) => [
      link(title),
      escaped(tags[0].name),
      inline(summary.replace(/(?<=\.) .*/s, '')),
    ]),
  )}</div>`;

function article({ title, summary, description = '', action, channel, reply, ...rest }: Operation, document: Document): string {
  const { messages, schemas } = document.components;
  const answer = reply && messages[`${title}.reply`];
  return `<article id="${title}"><h3>${link(title)}</h3>
${prose(summary)}
${facts(action, channel, rest['x-publishers'], document)}
${parts(messages[title], schemas)}
${answer ? `<h4 class="reply">Reply</h4>${parts(answer, schemas)}${prose(description)}` : ''}</article>`;
}

function facts(action: Operation['action'], channel: Ref, publishers: string[] = [], { channels }: Document): string {
  const { address, 'x-exchanges': exchanges = [] } = channels[nameOf(channel)];
  const queue = (name: string) => `${link(name)}, ${channels[name]['x-arguments']?.['x-queue-type']}, durable`;
  const rows = [['Routing key', code(address ?? '')]];
  if (action === 'receive') {
    rows.push([
      'Exchange and queue',
      exchanges.map(({ name, queues }) => `${code(name)}: ${queues.map(queue).join(', ')}`).join('<br />'),
    ]);
    rows.push([
      'Accounts of the setup that may publish it',
      publishers.map(code).join(', ') || 'none: it takes one with this routing key in its topic permission',
    ]);
  } else {
    const own = exchanges.flatMap(({ queues }) => queues);
    rows.push(['Exchange', exchanges.map(({ name }) => code(name)).join(', then ')]);
    rows.push(['Queues of the system itself', own.map(queue).join('<br />') || 'none']);
  }
  return `<dl>${rows.map(([term, value]) => `<div><dt>${term}</dt><dd>${value}</dd></div>`).join('')}</dl>`;
}

function parts(
  { headers, payload, contentType, examples: [example], ...message }: MessageObject,
  schemas: Document['components']['schemas'],
) {
  return `<h4>Body <small>${contentType}</small></h4>${fields(payload, schemas)}
<h4>Headers</h4>${fields(headers, schemas)}
<details><summary>AMQP properties</summary>${fields(message['x-amqp-properties'], schemas)}</details>
<h4>Example</h4>${pre(example.payload)}<p>with the headers</p>${pre(example.headers)}`;
}

function errors({ components: { messages, schemas } }: Document): string {
  const all = Object.values(messages).filter((message) => hasTag(message, 'error'));
  return `<p>Instead of a result. Header ${code('x-status')} has the name of the error, and so has the body; when each comes stands at every operation.</p>
${fields({ $ref: '#/components/schemas/ErrorBody' }, schemas)}
<h3>An example of each</h3>${all.map(({ examples: [{ payload }] }) => pre(payload)).join('\n')}`;
}

function queues({ channels, components: { messages, schemas } }: Document): string {
  const found = Object.entries(channels).filter(([, channel]) => channel['x-arguments']);
  const rows = found.map(([name, { description, messages: taken, ...channel }]) => [
    `<span id="${name}">${code(name)}</span>`,
    `${inline(description)} ${Object.keys(taken)
      .filter((key) => key in channels)
      .map(link)
      .join(', ')}`,
    Object.entries({ durable: true, ...channel['x-arguments'] })
      .map(([key, value]) => code(`${key}: ${value}`))
      .join('<br />'),
  ]);
  return `${table(['Queue', 'Content', 'Declared with'], rows)}
<h3>Dead letters</h3>${prose(messages.deadLetter.summary)}${fields(messages.deadLetter.headers, schemas)}
<h4>Example of the headers</h4>${pre(messages.deadLetter.examples[0].headers)}`;
}

function fields(schema: object, schemas: Record<string, object>): string {
  const rows = schemaRows(schema, schemas);
  if (rows.length === 0) return '<p>None.</p>';
  return table(
    ['Field', 'Type', 'Meaning'],
    rows.map(({ path, required, type, description }) => [
      `${code(path).replaceAll('.', '.<wbr />')}${required ? ' <small>required</small>' : ''}`,
      inline(type),
      inline(description),
    ]),
  );
}

/** A table whose cells are HTML. On a small screen each cell has the name of its column above it. */
function table(head: string[], rows: string[][]): string {
  const cells = (row: string[]) => row.map((cell, index) => `<td data-column="${head[index]}">${cell}</td>`).join('');
  return `<table><thead><tr>${head.map((name) => `<th>${name}</th>`).join('')}</tr></thead>
<tbody>${rows.map((row) => `<tr>${cells(row)}</tr>`).join('\n')}</tbody></table>`;
}

/** Renders paragraphs, lists and code in backticks, which is all the markup of the document. */
const prose = (text: string) =>
  text
    .split('\n\n')
    .filter(Boolean)
    .map((block) =>
      block.startsWith('- ')
        ? `<ul>${block
            .slice(2)
            .split('\n- ')
            .map((item) => `<li>${inline(item)}</li>`)
            .join('')}</ul>`
        : `<p>${inline(block)}</p>`,
    )
    .join('\n');

const escaped = (text: string) => text.replace(/[&<>"]/g, (character) => `&#${character.charCodeAt(0)};`);
const inline = (text: string) => escaped(text).replace(/`([^`]+)`/g, '<code>$1</code>');
const code = (text: string) => `<code>${escaped(text)}</code>`;
const link = (name: string) => `<a href="#${name}">${code(name)}</a>`;
// Focusable, so that it can be scrolled with the keyboard.
const pre = (value: unknown) => `<pre tabindex="0">${escaped(JSON.stringify(value, null, 2))}</pre>`;
/** The last part of a reference. */
const nameOf = ({ $ref }: Ref) => $ref.slice($ref.lastIndexOf('/') + 1);
