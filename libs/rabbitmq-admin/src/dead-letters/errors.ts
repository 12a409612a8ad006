/** The command cannot be carried out: exit code 1. */
export class DeadLetterError extends Error {}
