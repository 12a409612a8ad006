import type { ErrorBody } from '@app/contracts/error';

export const JSON_TYPE = 'application/json; charset=utf-8';

/** The body of every success. The reply is not parsed: what the service wrote is what the caller reads, to the byte. */
export const resultEnvelope = (json: string): string => `{"result":${json}}`;

/** The body of every error. */
export const errorEnvelope = ({ message, status, details }: ErrorBody): string =>
  JSON.stringify({ error: { message, status, details } });
