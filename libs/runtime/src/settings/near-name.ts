import { distance } from 'fastest-levenshtein';

/** Whether a name may be a misspelt `known` one: the same letters in another order, or up to two letters more, less or other. */
export function isNear(given: string, known: string): boolean {
  const anagram = [...given].sort().join('') === [...known].sort().join('');
  const difference = distance(given, known);
  return anagram || (difference <= 2 && difference < given.replace(/^-+/, '').length / 2);
}
