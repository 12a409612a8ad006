import { identifierProblem, type Check } from './fields';

/** Position after which a page starts: the last notification of the previous page. */
export interface PagePosition {
  /** Epoch milliseconds. */
  timestamp: number;
  notificationId: string;
}

/** Tokens are opaque to callers: base64url of `[timestamp, notificationId]`. */
export function encodePageToken({ timestamp, notificationId }: PagePosition): string {
  return Buffer.from(JSON.stringify([timestamp, notificationId])).toString('base64url');
}

/** The position in a token; undefined when this system has not made the token. */
export function decodePageToken(token: string): PagePosition | undefined {
  // An identifier of 256 bytes grows at worst sixfold as JSON, and by a third as base64.
  if (token.length > 2200 || !/^[A-Za-z0-9_-]+$/.test(token)) return undefined;
  try {
    const parsed = JSON.parse(Buffer.from(token, 'base64url').toString('utf8')) as unknown;
    if (!Array.isArray(parsed) || parsed.length !== 2) return undefined;
    const [timestamp, notificationId] = parsed as [unknown, unknown];
    if (!Number.isSafeInteger(timestamp) || (timestamp as number) < 0) return undefined;
    if (identifierProblem(notificationId)) return undefined;
    const position = { timestamp: timestamp as number, notificationId: notificationId as string };
    // base64 has several spellings of the same bytes: accept only the one that is returned.
    return encodePageToken(position) === token ? position : undefined;
  } catch {
    return undefined;
  }
}

export const pageTokenProblem: Check = (value) =>
  typeof value !== 'string'
    ? ' must be a string'
    : decodePageToken(value)
      ? undefined
      : ' must be a token that an earlier page of this operation returned';

/** A moment as a token: base64url of `[epoch milliseconds]`. */
export const encodeMomentToken = (moment: number): string => Buffer.from(JSON.stringify([moment])).toString('base64url');

/** The moment in a token; undefined when this system has not made the token. */
export function decodeMomentToken(token: string): number | undefined {
  if (token.length > 64) return undefined;
  const moment = /^\[([0-9]{1,15})\]$/.exec(Buffer.from(token, 'base64url').toString('latin1'))?.[1];
  return moment !== undefined && encodeMomentToken(Number(moment)) === token ? Number(moment) : undefined;
}

export const momentTokenProblem: Check = (value) =>
  typeof value !== 'string'
    ? ' must be a string'
    : decodeMomentToken(value) === undefined
      ? ' must be a token that an earlier call of this operation returned'
      : undefined;
