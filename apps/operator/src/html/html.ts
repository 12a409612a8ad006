/** Markup. Only {@link html} makes it, so that every text in it is escaped. */
export class Html {
  constructor(readonly text: string) {}
}

export type Part = Html | string | number | undefined | false | readonly Part[];

const ENTITIES: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' };
const escaped = (text: string): string => text.replace(/[&<>"']/g, (character) => ENTITIES[character] ?? '');

/**
 * Markup from a template. Values are escaped, unless they are markup themselves; `undefined` and `false` are nothing, and lists are joined.
 * A value in an attribute needs quotes around it.
 *
 * Our own, because the templates that were looked at have a sign for "do not escape" that can be written by accident.
 */
export function html(strings: TemplateStringsArray, ...values: Part[]): Html {
  return new Html(strings.reduce((text, literal, index) => text + textOf(values[index - 1]) + literal));
}

function textOf(part: Part): string {
  if (part instanceof Html) return part.text;
  if (part === undefined || part === false) return '';
  if (typeof part === 'string' || typeof part === 'number') return escaped(String(part));
  return part.map(textOf).join('');
}
