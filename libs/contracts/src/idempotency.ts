import { hash } from 'node:crypto';
import { stringify } from 'safe-stable-stringify';
import { ApiError } from './error';
import type { OwnError } from './message';

/** The error of every operation that takes an Idempotency-Key. */
export const USED_BEFORE: OwnError = {
  when: 'The `Idempotency-Key` was used before, with another request.',
  message: 'The Idempotency-Key was used with another request.',
};

export const usedBefore = () => new ApiError('FAILED_PRECONDITION', USED_BEFORE.message);

/** SHA-256 of a request, to recognize its repetition: equal for equal JSON values, independent of the order of their keys. */
export const fingerprintOf = (request: object): Buffer => hash('sha256', stringify(request) ?? '', 'buffer');
