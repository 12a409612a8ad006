/** The command cannot be executed: exit code 1. */
export class DeadLetterError extends Error {}
