import { isUtf8 } from 'node:buffer';
import { hash } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { identifierProblem } from '@app/contracts/fields';

const MAX_TOKEN_LENGTH = 512;

/** Credentials of a caller. The token itself is not kept, only its hash. */
export interface Credentials {
  apiKey: string;
  /** SHA-256 of the token, in lower-case hex. */
  tokenHash: string;
  /** Unique for each pair of key and token. It may be stored, because it contains only the hash of the token. */
  cacheKey: string;
}

/**
 * Reads both headers.
 *
 * @param rawHeaders names and values in turn, as received. Node joins repeated headers elsewhere, and the joined text is a value that the
 *   client did not send
 * @returns undefined when one is missing, repeated or cannot be valid
 */
export function readCredentials(rawHeaders: readonly string[]): Credentials | undefined {
  const apiKey = onlyValue(rawHeaders, 'x-svc-api-key');
  const token = onlyValue(rawHeaders, 'x-svc-auth-token');
  if (!apiKey || !token || token.length > MAX_TOKEN_LENGTH) return undefined;
  // Node decodes header bytes as Latin-1; here they are UTF-8.
  const bytes = Buffer.from(apiKey, 'latin1');
  if (!isUtf8(bytes) || identifierProblem(bytes.toString())) return undefined;

  const tokenHash = hash('sha256', Buffer.from(token, 'latin1'));
  const decoded = bytes.toString();
  return { apiKey: decoded, tokenHash, cacheKey: `${tokenHash} ${decoded}` };
}

const read = new WeakMap<IncomingMessage, Credentials>();

/** The credentials of a request, see {@link readCredentials}. Read once, because several checks ask for them. */
export function credentialsOf(request: IncomingMessage): Credentials | undefined {
  const known = read.get(request);
  if (known) return known;
  const credentials = readCredentials(request.rawHeaders);
  if (credentials) read.set(request, credentials);
  return credentials;
}

function onlyValue(rawHeaders: readonly string[], name: string): string | undefined {
  let value: string | undefined;
  for (let index = 0; index + 1 < rawHeaders.length; index += 2) {
    if (rawHeaders[index].toLowerCase() !== name) continue;
    if (value !== undefined) return undefined;
    value = rawHeaders[index + 1];
  }
  return value;
}
