/**
 * The row of a deleted notification. An empty string is no identifier, so no filter finds the row, and it has no recipients. It keeps the id and
 * the fingerprint for {@link KEEP_DELETED_MS}. Its timestamp is the moment of the deletion.
 */
export const DELETED = {
  documentId: '',
  content: '{"actionUser":{"userId":""},"displayHeadlineMessageTemplate":"","notifyUsers":[]}',
};

/** Time for which the id of a deleted notification is taken, in milliseconds. Longer than the promised 24 hours of an Idempotency-Key. */
export const KEEP_DELETED_MS = 25 * 60 * 60 * 1000;
