import { keptPart, type DeadLetter, type LetterSummary } from './dead-letter';
import { printable } from './printable';
import type { Claim, Origin } from './testimony';

const HEAD = [
  '#',
  'ID',
  'OPERATION',
  'STATUS',
  'TENANT',
  'PUBLISHER',
  'APP',
  'TRIES',
  'FIRST FAILED',
  'REQUEST',
  'BYTES',
  'REASON',
];

/** Longest texts of a publisher in a line of a list, in characters: one of them would make every line as wide. */
const CELL = 80;
const REASON = 500;
const shortened = (text: string, most: number): string => (text.length > most ? `${text.slice(0, most - 1)}…` : text);

/**
 * One line for each dead letter, in columns; the reason is last, because it is the longest. A question mark marks an unproved value. Long texts are
 * shortened but for the id, by which the letter is shown with all of them.
 */
export function listLines(letters: readonly LetterSummary[]): string[] {
  const table = [HEAD, ...letters.map(row)];
  const widths = HEAD.map((_, column) => Math.max(...table.map((cells) => cells[column].length)));
  return table.map((cells) =>
    cells
      .map((cell, column) => cell.padEnd(widths[column]))
      .join('  ')
      .trimEnd(),
  );
}

function row(letter: LetterSummary): string[] {
  const claim = (name: Claim, value: string | undefined) =>
    value === undefined ? '-' : letter.unproved.includes(name) ? `${value}?` : value;
  return [
    String(letter.position),
    word(letter.id),
    claim('operation', letter.operation && cell(letter.operation)),
    claim('status', cell(letter.status)),
    cell(letter.apiKey),
    shortened(publisherOf(letter), CELL),
    cell(letter.app),
    claim('attempts', letter.attempts?.toString()),
    claim('firstFailedAt', letter.firstFailedAt?.toISOString()),
    cell(letter.requestId),
    String(letter.size),
    shortened(letter.reason, REASON),
  ];
}

/** Quotes a text with spaces: otherwise text of a publisher could look like further columns. */
const word = (text: string | undefined): string => (text === undefined ? '-' : /[\s"]/.test(text) ? JSON.stringify(text) : text);

const cell = (text: string | undefined): string => shortened(word(text), CELL);

const publisherOf = ({ origin, account }: LetterSummary): string =>
  origin === 'unknown' ? 'origin unknown' : account === undefined ? 'none' : word(account);

/** For scripts. Unknown values are null. */
export const summaryData = (letter: LetterSummary) => ({
  queue: letter.queue,
  position: letter.position,
  id: letter.id,
  requestId: letter.requestId ?? null,
  operation: letter.operation ?? null,
  status: letter.status,
  reason: letter.reason,
  apiKey: letter.apiKey ?? null,
  origin: letter.origin,
  publisher: letter.account ?? null,
  app: letter.app ?? null,
  attempts: letter.attempts ?? null,
  firstFailedAt: letter.firstFailedAt?.toISOString() ?? null,
  size: letter.size,
  stub: letter.stubOf !== undefined,
  sha256: letter.stubOf?.sha256 ?? null,
  unproved: letter.unproved,
});

/** All data of a dead letter. The body is unchanged text, or Base64 when it is not UTF-8. */
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

const ORIGINS: Record<Origin, string> = {
  service: 'a service put it here and wrote its headers',
  unknown: 'unknown: not proved to be from a service, so any publisher may have written its headers',
};

export function showLines(letter: DeadLetter): string[] {
  const { properties, headers, body, bodyEncoding, unproved, stub, ...summary } = letterData(letter);
  const section = (title: string, entries: Record<string, unknown>) => [
    title,
    ...Object.entries(entries)
      .filter(([, value]) => value !== undefined && value !== null)
      .map(([name, value]) => printable(`  ${name}: ${typeof value === 'string' ? value : JSON.stringify(value)}`)),
  ];
  const pretty = bodyEncoding === 'utf8' ? prettyJson(body) : undefined;
  const form = bodyEncoding === 'base64' ? 'not UTF-8, in Base64' : pretty === undefined ? 'not JSON' : 'JSON';
  const kept = stub ? keptPart(letter) : undefined;
  return [
    ...section('Letter', {
      ...summary,
      origin: ORIGINS[letter.origin],
      publisher: publisherOf(letter),
      unproved: unproved.length > 0 ? unproved.join(', ') : undefined,
    }),
    ...section('Properties', properties),
    ...section(letter.origin === 'service' ? 'Headers' : 'Headers (unproved)', headers),
    `Body (${kept ? `${kept}; ` : ''}${form})`,
    ...(pretty ?? body).split('\n').map(printable),
  ];
}

/** undefined when it is not JSON, or is nested too deeply for JSON.stringify. */
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
