/** A handler may throw anything, also what has no text. */
export function textOf(thrown: unknown): string {
  try {
    const message: unknown = (thrown as { message?: unknown } | null | undefined)?.message;
    return typeof message === 'string' ? message : String(thrown);
  } catch {
    return 'the handler threw something without a text';
  }
}
