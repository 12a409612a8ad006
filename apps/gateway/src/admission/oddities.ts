import type { IncomingMessage } from 'node:http';
import { HttpError, refusal, WRONG_VERSION } from '../server/http-error';

/** Most headers of a request. The names and values of those that are still arriving take several times their bytes. */
export const MAX_HEADERS = 128;

/** Whether a request has more than {@link MAX_HEADERS}. Node has dropped further ones then, perhaps a repeated credential. */
const hasTooManyHeaders = ({ rawHeaders }: IncomingMessage): boolean => rawHeaders.length > 2 * MAX_HEADERS;

/**
 * Finds requests that Node's parser accepts, but that a proxy in front of the gateway could interpret differently (request smuggling).
 *
 * @returns the problem as a sentence; undefined when there is none
 */
function oddityOf({ httpVersion, headers, rawHeaders }: IncomingMessage): string | undefined {
  if (httpVersion !== '1.1' && httpVersion !== '1.0') return WRONG_VERSION;
  if (httpVersion === '1.1' && headers.host === undefined) return 'The header Host is missing.';
  const encoding = headers['transfer-encoding'];
  if (encoding !== undefined && encoding.toLowerCase() !== 'chunked') return 'The transfer encoding must be chunked.';
  // A program of that version reads such a body up to the end of the connection, or not at all.
  if (encoding !== undefined && httpVersion === '1.0') return 'HTTP/1.0 has no transfer encoding.';
  const repeated = repeatedOf(rawHeaders);
  return repeated && `The header ${repeated} must be sent once.`;
}

/** The refusal of a request that another program could read differently. It closes the connection: its further bytes cannot be read safely. */
export function ambiguityOf(request: IncomingMessage): HttpError | undefined {
  if (hasTooManyHeaders(request)) return closing(refusal(431, 'The headers are too large.'));
  const oddity = oddityOf(request);
  return oddity === undefined ? undefined : closing(refusal(400, oddity));
}

const closing = ({ httpStatus, status, message, headers }: HttpError) =>
  new HttpError(httpStatus, status, message, { ...headers, connection: 'close' });

/** @param rawHeaders names and values in turn, as received: elsewhere Node silently keeps only the first of repeated headers */
function repeatedOf(rawHeaders: readonly string[]): string | undefined {
  let hosts = 0;
  let types = 0;
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = rawHeaders[index];
    // Compare the length first, because it is cheap and most names have another length.
    if (name.length === 4 && name.toLowerCase() === 'host' && ++hosts > 1) return 'Host';
    if (name.length === 12 && name.toLowerCase() === 'content-type' && ++types > 1) return 'Content-Type';
  }
  return undefined;
}
