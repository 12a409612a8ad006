/** The command line is wrong: exit code 2. */
export class UsageError extends Error {}

/** The command cannot be executed: exit code 1. */
export class DeadLetterError extends Error {}
