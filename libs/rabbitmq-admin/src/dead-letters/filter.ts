import { parseJson } from '@app/contracts/json';
import type { DeadLetter } from './dead-letter';

/** Conditions on a dead letter. All given ones must hold. */
export interface Filter {
  id?: string;
  requestId?: string;
  status?: string;
  operation?: string;
  apiKey?: string;
  /** Broker account. */
  publisher?: string;
  /** A value anywhere in the body, such as a userId. */
  user?: string;
  /** Part of the reason, case-insensitive. */
  reason?: string;
  /** Range of the first failure. A dead letter without this time does not match. */
  since?: Date;
  until?: Date;
}

/** Whether a dead letter matches. Unproved facts count too, because a match gives no rights. */
export function matches(filter: Filter, letter: DeadLetter): boolean {
  const { since, until, reason, user } = filter;
  const failedAt = letter.firstFailedAt?.getTime();
  return (
    (filter.id === undefined || filter.id === letter.id) &&
    (filter.requestId === undefined || filter.requestId === letter.requestId) &&
    (filter.status === undefined || filter.status === letter.status) &&
    (filter.operation === undefined || filter.operation === letter.operation) &&
    (filter.apiKey === undefined || filter.apiKey === letter.apiKey) &&
    (filter.publisher === undefined || filter.publisher === letter.account) &&
    (user === undefined || names(letter.message.content, user)) &&
    (reason === undefined || letter.reason.toLowerCase().includes(reason.toLowerCase())) &&
    (since === undefined || (failedAt !== undefined && failedAt >= since.getTime())) &&
    (until === undefined || (failedAt !== undefined && failedAt <= until.getTime()))
  );
}

/** Whether the body has a text as a value. In the beginning of a body, or in one that cannot be read, every JSON string counts. */
function names(body: Buffer, text: string): boolean {
  const isIn = (value: unknown): boolean =>
    value === text || (typeof value === 'object' && value !== null && Object.values(value).some(isIn));
  try {
    return isIn(parseJson(body));
  } catch {
    return body.includes(JSON.stringify(text)) || stringsIn(body.toString()).includes(text);
  }
}

/** The last one may have no end, and is taken too: else a search would begin at each quote in it. */
const JSON_STRINGS = /"[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?$)/gs;

/** As their writer meant them: many programs escape what needs no escape, such as letters beyond ASCII. */
const stringsIn = (text: string): string[] =>
  (text.match(JSON_STRINGS) ?? []).flatMap((json) => {
    try {
      return JSON.parse(json) as string;
    } catch {
      return [];
    }
  });
