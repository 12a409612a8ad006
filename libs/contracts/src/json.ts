import { isUtf8 } from 'node:buffer';
import { ApiError } from './error';

/** Deepest nesting of arrays and objects in a body; the body itself is level 1. */
export const MAX_DEPTH = 32;

/** Longest body of a request, in bytes. */
export const MAX_BODY_BYTES = 1024 * 1024;

/** Longest body of a query in a message. JSON.stringify() makes none that is longer: 1000 identifiers of 256 characters, each with an escape. */
export const MAX_QUERY_BYTES = MAX_BODY_BYTES / 2;

/**
 * Most values in a body; an empty object or list counts twice. More than the largest valid body of any operation has: two fields of free data with
 * 64 KiB each. A parsed value takes up to 30 times the bytes of its text.
 */
export const MAX_VALUES = 120_000;

const PROTOTYPE_KEYS = new Set(['__proto__', 'constructor', 'prototype']);

/**
 * Parses untrusted JSON. It refuses values that PostgreSQL cannot store or JavaScript cannot represent, because they would cause a 5xx later: NUL
 * (not storable in text or json), lone surrogates (silently replaced on encoding), numbers beyond the double range, nesting too deep for
 * JSON.stringify, and keys that touch prototypes. The last of duplicate keys counts.
 *
 * @throws ApiError INVALID_ARGUMENT that names the problem, without quoting the body
 */
export function parseJson(bytes: Buffer): unknown {
  if (!isUtf8(bytes)) throw refused('The body must be UTF-8.');
  if (bytes.length > MAX_VALUES && valuesOf(bytes) > MAX_VALUES)
    throw refused(`The body must have at most ${MAX_VALUES} values.`);
  const text = bytes.toString('utf8');
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    // The parser's own message quotes the body. Some programs write such a mark in front of UTF-8, and nothing shows it.
    throw refused(text.startsWith('\ufeff') ? 'The body must be JSON, without a byte order mark.' : 'The body must be JSON.');
  }
  // Valid UTF-8 has no surrogates, and JSON has no raw NUL: only an escape can produce them.
  refuseHostile(value, 1, text.includes('\\u'));
  return value;
}

const [QUOTE, BACKSLASH, COMMA, BRACKET, BRACE] = Buffer.from('"\\,[{');

/** The values in JSON, without parsing it; see {@link MAX_VALUES}. Bytes of longer UTF-8 characters are no part of its syntax. */
export function valuesOf(bytes: Buffer): number {
  let values = 1;
  let isInString = false;
  for (let index = 0; index < bytes.length; index++) {
    const byte = bytes[index];
    if (byte === QUOTE) isInString = !isInString;
    else if (isInString) {
      if (byte === BACKSLASH) index++;
    } else if (byte === COMMA || byte === BRACKET || byte === BRACE) values++;
  }
  return values;
}

/** The recursion is limited by MAX_DEPTH. */
function refuseHostile(value: unknown, depth: number, hasEscapes: boolean): void {
  if (typeof value === 'string') {
    if (hasEscapes) refuseText(value, 'A string');
  } else if (typeof value === 'number') {
    if (!Number.isFinite(value)) throw refused('A number in the body is out of range.');
  } else if (typeof value === 'object' && value !== null) {
    if (depth > MAX_DEPTH) throw refused(`The body must not be nested deeper than ${MAX_DEPTH} levels.`);
    if (Array.isArray(value)) for (const one of value) refuseHostile(one, depth + 1, hasEscapes);
    else {
      for (const key of Object.keys(value)) {
        if (PROTOTYPE_KEYS.has(key)) throw refused('The body must not have a key named __proto__, constructor or prototype.');
        if (hasEscapes) refuseText(key, 'A key');
        refuseHostile((value as Record<string, unknown>)[key], depth + 1, hasEscapes);
      }
    }
  }
}

function refuseText(text: string, what: string): void {
  if (text.includes('\0')) throw refused(`${what} in the body contains a NUL character.`);
  if (!text.isWellFormed()) throw refused(`${what} in the body contains half of a surrogate pair.`);
}

const refused = (message: string) => new ApiError('INVALID_ARGUMENT', message);
