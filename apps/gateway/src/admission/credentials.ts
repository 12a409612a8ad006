import { isUtf8 } from 'node:buffer';
import { hash } from 'node:crypto';
import { identifierProblem } from '@app/contracts/fields';

const MAX_TOKEN_LENGTH = 512;

/** What a caller proves itself with. The token itself is not kept: its hash is enough for everything. */
export interface Credentials {
  apiKey: string;
  /** SHA-256 of the token, in lower-case hex. */
  tokenHash: string;
  /** Differs for every pair of them, and may be kept: the token is in it as its SHA-256 only. */
  cacheKey: string;
}

/**
 * Reads both headers.
 *
 * @param rawHeaders names and values in turn, as they came: Node joins a repeated header, and the joined text would be a value that nobody
 *   sent
 * @returns undefined when one is missing, repeated or cannot be valid
 */
export function readCredentials(rawHeaders: readonly string[]): Credentials | undefined {
  const apiKey = onlyValue(rawHeaders, 'x-svc-api-key');
  const token = onlyValue(rawHeaders, 'x-svc-auth-token');
  if (!apiKey || !token || token.length > MAX_TOKEN_LENGTH) return undefined;
  // Node reads headers as Latin-1; what was sent are bytes.
  const bytes = Buffer.from(apiKey, 'latin1');
  if (!isUtf8(bytes) || identifierProblem(bytes.toString())) return undefined;

  const tokenHash = hash('sha256', Buffer.from(token, 'latin1'));
  const decoded = bytes.toString();
  return { apiKey: decoded, tokenHash, cacheKey: `${tokenHash} ${decoded}` };
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
