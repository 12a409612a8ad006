/** Longest time of one statement, including waits for locks, in milliseconds. It is shorter than the time that a caller waits. */
export const STATEMENT_TIMEOUT_MS = 2000;
