import { distance } from 'fastest-levenshtein';
import { fieldsOf } from './fields';
import type { Naming, Refusal } from './message';

/** Letters by which a misspelt name may differ from a field's. */
const MISSPELT = 2;
/** Unknown fields that are compared with a missing one. */
const MAX_COMPARED = 100;

type Sent = Readonly<Record<string, unknown>>;

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
    return unknown.find((key) => key.length <= missing.length + MISSPELT && distance(key, missing) <= MISSPELT);
  };
}

/** The rule of a command that deletes: a field that says of what is optional, so a misspelt one would be ignored and too much be deleted. */
export function refuseMisspelt(type: new () => object, sent: Sent, named: Naming): Refusal | undefined {
  const misspelt = misspeltIn(type, sent);
  for (const { name } of fieldsOf(type)) {
    const given = misspelt(name);
    if (given !== undefined) return { message: `${named(given)} is not a field; did you mean ${name}?`, fields: [given] };
  }
  return undefined;
}
