import 'reflect-metadata';
import { ALL_EVENTS } from '@app/contracts/all-events';
import { ALL_MESSAGES } from '@app/contracts/all-messages';
import { asyncApiDocument } from './document';
import { errorsOf } from './errors';
import { messagesPage } from './page';

const html = messagesPage(asyncApiDocument());
const articles = new Map([...html.matchAll(/<article id="([^"]+)">([\s\S]*?)<\/article>/g)].map(([, id, text]) => [id, text]));
const inText = (text: string) =>
  text.replace(/<[^>]+>/g, '').replace(/&#(\d+);/g, (_, number) => String.fromCharCode(Number(number)));

describe('the page about messages', () => {
  it('has every message and event once, and no script', () => {
    const ids = [...ALL_MESSAGES.map(({ pattern }) => pattern), ...ALL_EVENTS.map(({ type }) => type)];
    expect([...articles.keys()].sort()).toEqual(ids.sort());
    expect(html).not.toMatch(/<script|\son\w+=|undefined|\[object/i);
  });

  it('has a bar that leads back to the contents from everywhere', () => {
    const [, bar] = /<nav>(.*?)<\/nav>/s.exec(html) ?? [];
    expect(bar).toContain('<a href="#contents">');
    expect(html).toMatch(/<div id="contents"><h2>Commands<\/h2>/);
  });

  it('has exactly one target for every internal link', () => {
    const targets = new Set([...html.matchAll(/href="#([^"]+)"/g)].map(([, target]) => target));
    expect([...targets]).toEqual(expect.arrayContaining([...articles.keys()]));
    for (const target of targets) expect(html.split(` id="${target}"`)).toHaveLength(2);
  });

  it.each(ALL_MESSAGES.map((message) => [message.pattern, message] as const))(
    'describes purpose, queues, fields, reply and errors of %s',
    (pattern, message) => {
      const text = inText(articles.get(pattern) ?? '');
      const { purpose, service, kind, example, replyHeaders = {} } = message;
      expect(text).toContain(purpose.replaceAll('`', ''));
      expect(text).toContain(`${service}.${kind === 'command' ? 'commands' : 'queries'}`);
      for (const body of [example.request, example.result]) expect(text).toContain(JSON.stringify(body, null, 2));
      for (const field of [...Object.keys(example.request), ...Object.keys(example.result)]) expect(text).toContain(field);
      for (const name of ['x-request-id', 'x-status', 'reply_to', ...Object.keys(replyHeaders)]) expect(text).toContain(name);
      for (const { status, when } of errorsOf(message)) expect(text).toContain(`${status}: ${when.replaceAll('`', '')}`);
    },
  );

  it('escapes its content', () => {
    const document = asyncApiDocument();
    document.operations['users.add.v1'].summary = '<script>alert("1")</script> & `<b>`';
    expect(messagesPage(document)).toContain(
      '&#60;script&#62;alert(&#34;1&#34;)&#60;/script&#62; &#38; <code>&#60;b&#62;</code>',
    );
  });
});
