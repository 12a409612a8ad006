/** The command line itself is wrong: exit code 2. */
export class UsageError extends Error {}

/** The command cannot be carried out: exit code 1. */
export class DeadLetterError extends Error {}
