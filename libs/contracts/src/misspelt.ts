import { distance } from 'fastest-levenshtein';
import { fieldsOf } from './fields';
import type { Naming, Refusal, Sent } from './message';

/** Letters by which a misspelt name may differ from a field's. */
const MISSPELT = 2;
/** Letters of an abbreviation: shorter names, such as `id`, are within any field's. */
const LEAST_ABBREVIATION = 3;
/** Letters of the longest misspelling: it comes back in the error, and stands in a line of the log. */
const MOST_LETTERS = 64;
/** Unknown fields that are compared with a missing one. */
const MAX_COMPARED = 100;

/** Finds the unknown field that a missing one may be, because unknown fields are dropped in silence. */
export function misspeltIn(type: new () => object, sent: Sent): (missing: string) => string | undefined {
  // Once for all missing fields: a body may have a hundred thousand keys, and to list them takes 15 ms.
  let unknown: string[] | undefined;
  return (missing) => {
    if (sent[missing] !== undefined) return undefined;
    const known = fieldsOf(type).map(({ name }) => name);
    unknown ??= Object.keys(sent)
      .slice(0, MAX_COMPARED)
      .filter((key) => !known.includes(key));
    return unknown.find((key) => isNear(key.toLowerCase(), missing.toLowerCase()));
  };
}

/** Whether a name is a misspelling of a field's name, begins with it (`accessType`), or abbreviates it (`orgId`). */
const isNear = (key: string, field: string): boolean =>
  (key.length <= MOST_LETTERS && key.startsWith(field)) ||
  (key.length <= field.length + MISSPELT && (distance(key, field) <= MISSPELT || abbreviates(key, field)));

function abbreviates(key: string, field: string): boolean {
  let found = 0;
  for (const letter of field) if (letter === key[found]) found++;
  return key.length >= LEAST_ABBREVIATION && key[0] === field[0] && found === key.length;
}

/**
 * The rule of commands that do something else when a field is absent: a misspelt filter of a deletion, a misspelt access of a document, or a misspelt
 * list of readers would be ignored in silence.
 */
export function refuseMisspelt(type: new () => object, sent: Sent, named: Naming): Refusal | undefined {
  const misspelt = misspeltIn(type, sent);
  for (const { name } of fieldsOf(type)) {
    const given = misspelt(name);
    if (given !== undefined) return { message: `${named(given)} is not a field; did you mean ${name}?`, fields: [given] };
  }
  return undefined;
}
