import type { LetterSummary } from './dead-letter';

/** Conditions on a dead letter. All given ones must hold. */
export interface Filter {
  id?: string;
  status?: string;
  operation?: string;
  apiKey?: string;
  /** Broker account. */
  publisher?: string;
  /** Part of the reason, case-insensitive. */
  reason?: string;
  /** Range of the first failure. A dead letter without this time does not match. */
  since?: Date;
  until?: Date;
}

/** Whether a dead letter matches. Unproved facts count too, because a match gives no rights. */
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
