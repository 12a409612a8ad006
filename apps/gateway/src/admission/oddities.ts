import type { IncomingMessage } from 'node:http';

/**
 * What Node's parser lets through although two programs could read it in two ways: a proxy before the gateway one, the gateway the other.
 *
 * @returns what is wrong, as a sentence
 */
export function oddityOf({ httpVersion, headers, rawHeaders }: IncomingMessage): string | undefined {
  if (httpVersion !== '1.1' && httpVersion !== '1.0') return 'The version of HTTP must be 1.0 or 1.1.';
  if (httpVersion === '1.1' && headers.host === undefined) return 'The header Host is missing.';
  const encoding = headers['transfer-encoding'];
  if (encoding !== undefined && encoding.toLowerCase() !== 'chunked') return 'The transfer encoding must be chunked.';
  const repeated = repeatedOf(rawHeaders);
  return repeated && `The header ${repeated} must be sent once.`;
}

/** @param rawHeaders names and values in turn, as they came: Node keeps the first of repeated ones without a word */
function repeatedOf(rawHeaders: readonly string[]): string | undefined {
  let hosts = 0;
  let types = 0;
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = rawHeaders[index];
    // Most are of another length, which costs nothing to see.
    if (name.length === 4 && name.toLowerCase() === 'host' && ++hosts > 1) return 'Host';
    if (name.length === 12 && name.toLowerCase() === 'content-type' && ++types > 1) return 'Content-Type';
  }
  return undefined;
}
