import type { LetterSummary } from './dead-letter';

/** What a letter must be, in everything that is given. */
export interface Filter {
  id?: string;
  status?: string;
  operation?: string;
  apiKey?: string;
  /** Broker account. */
  publisher?: string;
  /** Part of the reason, in upper or lower case. */
  reason?: string;
  /** When it failed first. A letter that does not tell is in no such range. */
  since?: Date;
  until?: Date;
}

/** Whether a letter is one of those; what it tells counts without a proof, because choosing gives it no right. */
export function matches(filter: Filter, letter: LetterSummary): boolean {
  const { since, until, reason } = filter;
  const failedAt = letter.firstFailedAt?.getTime();
  return (
    (filter.id === undefined || filter.id === letter.id) &&
    (filter.status === undefined || filter.status === letter.status) &&
    (filter.operation === undefined || filter.operation === letter.operation) &&
    (filter.apiKey === undefined || filter.apiKey === letter.apiKey) &&
    (filter.publisher === undefined || filter.publisher === letter.account) &&
    (reason === undefined || letter.reason.toLowerCase().includes(reason.toLowerCase())) &&
    (since === undefined || (failedAt !== undefined && failedAt >= since.getTime())) &&
    (until === undefined || (failedAt !== undefined && failedAt <= until.getTime()))
  );
}
