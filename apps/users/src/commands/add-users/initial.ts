import { LIMITS } from '@app/contracts/fields';

const graphemes = new Intl.Segmenter('und', { granularity: 'grapheme' });

/** White space and invisible format characters: a name in a right-to-left script often starts with one. */
const INVISIBLE_START = /^[\s\p{Cf}]+/u;

/** Fast path: most names begin with two printable ASCII characters, which are never one grapheme. The segmenter is slow. */
const PLAIN_START = /^[!-~][ -~]/;

/** The first grapheme of a name (a letter with its accents, or one emoji), in upper case. undefined when the name has none. */
export function initialOf(name: string): string | undefined {
  if (PLAIN_START.test(name)) return name.charAt(0).toUpperCase();
  const [first] = graphemes.segment(name.replace(INVISIBLE_START, ''));
  if (!first) return undefined;
  // A grapheme may have any number of combining marks.
  return Array.from(first.segment.toUpperCase()).slice(0, LIMITS.initialLength).join('');
}
