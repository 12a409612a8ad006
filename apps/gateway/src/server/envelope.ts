import type { ErrorBody } from '@app/contracts/error';

export const JSON_TYPE = 'application/json; charset=utf-8';

/** The body of every success. The reply is not parsed: the caller gets exactly the bytes that the service wrote. */
export const resultEnvelope = (json: string): string => `{"result":${json}}`;

/** The body of every error. */
export const errorEnvelope = ({ message, status, details }: ErrorBody): string =>
  JSON.stringify({ error: { message, status, details } });
