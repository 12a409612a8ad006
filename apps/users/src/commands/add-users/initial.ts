import { LIMITS } from '@app/contracts/fields';

const graphemes = new Intl.Segmenter('und', { granularity: 'grapheme' });

/** White space, and marks that have no shape of their own: a name in a right-to-left script often starts with one. */
const INVISIBLE_START = /^[\s\p{Cf}]+/u;

/** No two printable ASCII characters are one grapheme, and most names begin with them: the segmenter takes longer than all else here. */
const PLAIN_START = /^[!-~][ -~]/;

/** The first letter of a name as a reader sees it (one emoji, or a letter with its accents), in upper case. */
export function initialOf(name: string): string | undefined {
  if (PLAIN_START.test(name)) return name.charAt(0).toUpperCase();
  const [first] = graphemes.segment(name.replace(INVISIBLE_START, ''));
  if (!first) return undefined;
  // Any number of combining marks is one grapheme.
  return Array.from(first.segment.toUpperCase()).slice(0, LIMITS.initialLength).join('');
}
