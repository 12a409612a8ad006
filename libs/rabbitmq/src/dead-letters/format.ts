import { printable, type DeadLetter, type LetterSummary } from './dead-letter';

/** One line for each letter, in columns; the reason comes last because it is the longest. */
export function listLines(letters: readonly LetterSummary[]): string[] {
  const rows = letters.map((letter) => [
    String(letter.position),
    letter.id,
    letter.operation ?? '-',
    letter.status,
    letter.apiKey ?? '-',
    letter.publisher ?? '-',
    String(letter.attempts),
    letter.firstFailedAt?.toISOString() ?? '-',
    String(letter.size),
    letter.reason,
  ]);
  const table = [HEAD, ...rows];
  const widths = HEAD.map((_, column) => Math.max(...table.map((row) => row[column].length)));
  return table.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column]))
      .join('  ')
      .trimEnd(),
  );
}

const HEAD = ['#', 'ID', 'OPERATION', 'STATUS', 'TENANT', 'PUBLISHER', 'TRIES', 'FIRST FAILED', 'BYTES', 'REASON'];

/** For scripts: what is unknown is null. */
export const summaryData = (letter: LetterSummary) => ({
  queue: letter.queue,
  position: letter.position,
  id: letter.id,
  operation: letter.operation ?? null,
  status: letter.status,
  reason: letter.reason,
  apiKey: letter.apiKey ?? null,
  publisher: letter.publisher ?? null,
  attempts: letter.attempts,
  firstFailedAt: letter.firstFailedAt?.toISOString() ?? null,
  size: letter.size,
});

/** Everything of a letter. The body is text as it came, or Base64 when it is not UTF-8. */
export function letterData(letter: DeadLetter) {
  const { headers, ...properties } = letter.message.properties;
  const text = utf8(letter.message.content);
  return {
    ...summaryData(letter),
    properties: properties as Record<string, unknown>,
    headers: (headers ?? {}) as Record<string, unknown>,
    body: text ?? letter.message.content.toString('base64'),
    bodyEncoding: text === undefined ? 'base64' : 'utf8',
  };
}

export function showLines(letter: DeadLetter): string[] {
  const { properties, headers, body, bodyEncoding, ...summary } = letterData(letter);
  const section = (title: string, entries: Record<string, unknown>) => [
    title,
    ...Object.entries(entries)
      .filter(([, value]) => value !== undefined && value !== null)
      .map(([name, value]) => printable(`  ${name}: ${typeof value === 'string' ? value : JSON.stringify(value)}`)),
  ];
  const pretty = bodyEncoding === 'utf8' ? prettyJson(body) : undefined;
  return [
    ...section('Letter', summary),
    ...section('Properties', properties),
    ...section('Headers', headers),
    `Body (${bodyEncoding === 'base64' ? 'not UTF-8, in Base64' : pretty === undefined ? 'not JSON' : 'JSON'})`,
    ...(pretty ?? body).split('\n').map(printable),
  ];
}

/** undefined when it is not JSON, or is nested too deeply to be written again. */
function prettyJson(text: string): string | undefined {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return undefined;
  }
}

function utf8(content: Buffer): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(content);
  } catch {
    return undefined;
  }
}
