/** A valid Idempotency-Key, as an HTTP and an AMQP header: 1-255 printable ASCII characters. */
export const IDEMPOTENCY_KEY = /^[\x20-\x7e]{1,255}$/;

/** A valid request id of a caller: 1-128 printable ASCII characters. Others are replaced. */
export const REQUEST_ID = /^[\x20-\x7e]{1,128}$/;
