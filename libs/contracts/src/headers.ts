/** What an Idempotency-Key may be, as an HTTP header and as an AMQP header: 1-255 printable ASCII characters. */
export const IDEMPOTENCY_KEY = /^[\x20-\x7e]{1,255}$/;

/** What a request id may be, to be taken over from the caller: 1-128 printable ASCII characters. */
export const REQUEST_ID = /^[\x20-\x7e]{1,128}$/;
