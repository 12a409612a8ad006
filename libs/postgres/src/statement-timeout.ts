/** Longest that one statement may run, waiting for locks included, in milliseconds. Below the time that a caller waits. */
export const STATEMENT_TIMEOUT_MS = 2000;
