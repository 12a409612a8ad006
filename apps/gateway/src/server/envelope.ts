import type { ErrorBody } from '@app/contracts/error';

export const JSON_TYPE = 'application/json; charset=utf-8';

const BEFORE_RESULT = Buffer.from('{"result":');
const AFTER_RESULT = Buffer.from('}');

/** A larger result never becomes a string, which V8 would copy and scan several times. Small strings need no memory outside its heap. */
const LARGE_RESULT_BYTES = 64 * 1024;

/** The body of every success. The reply is not parsed: the caller gets exactly the bytes that the service wrote. */
export const resultEnvelope = (json: Buffer): string | Buffer =>
  json.length > LARGE_RESULT_BYTES ? Buffer.concat([BEFORE_RESULT, json, AFTER_RESULT]) : `{"result":${json.toString()}}`;

/** The body of every error. */
export const errorEnvelope = ({ message, status, details }: ErrorBody): string =>
  JSON.stringify({ error: { message, status, details } });
