import type { OwnError } from './message';

/** The error of every operation that takes an Idempotency-Key. */
export const USED_BEFORE: OwnError = {
  when: 'The `Idempotency-Key` was used before, with another request.',
  message: 'The Idempotency-Key was used with another request.',
};
