import { Field, identifierProblem, type Check } from './fields';

/** Characters. An identifier of 256 bytes grows at worst sixfold as JSON, and by a third as base64. */
const MAX_LENGTH = 2200;

/** Position after which a page starts: the last notification of the previous page. */
export interface PagePosition {
  /** Epoch milliseconds. */
  timestamp: number;
  notificationId: string;
}

/** Tokens are opaque to callers: base64url of `[timestamp, notificationId]`. */
export const encodePageToken = ({ timestamp, notificationId }: PagePosition): string => encode([timestamp, notificationId]);

/** The position in a token; undefined when this system has not made the token. */
export function decodePageToken(token: string): PagePosition | undefined {
  const [timestamp, notificationId, ...others] = decode(token);
  if (!Number.isSafeInteger(timestamp) || (timestamp as number) < 0) return undefined;
  if (identifierProblem(notificationId) || others.length > 0) return undefined;
  return { timestamp: timestamp as number, notificationId: notificationId as string };
}

/** Token of a page of users: base64url of `[userId]`, the last user of the page. */
export const encodeUserToken = (userId: string): string => encode([userId]);

/** The userId in a token; undefined when this system has not made the token. */
export function decodeUserToken(token: string): string | undefined {
  const [userId, ...others] = decode(token);
  return identifierProblem(userId) || others.length > 0 ? undefined : (userId as string);
}

/** Token of a deletion: base64url of `[epoch milliseconds]`, the moment of its first call. */
export const encodeMomentToken = (moment: number): string => encode([moment]);

/** The moment in a token; undefined when this system has not made the token. */
export function decodeMomentToken(token: string): number | undefined {
  const [moment, ...others] = decode(token);
  return Number.isSafeInteger(moment) && (moment as number) >= 0 && others.length === 0 ? (moment as number) : undefined;
}

const encode = (parts: unknown[]): string => Buffer.from(JSON.stringify(parts)).toString('base64url');

/** The parts of a token; empty when this system has not made the token. */
function decode(token: string): unknown[] {
  if (token.length > MAX_LENGTH || !/^[A-Za-z0-9_-]+$/.test(token)) return [];
  try {
    const parts = JSON.parse(Buffer.from(token, 'base64url').toString('utf8')) as unknown;
    // base64 has several spellings of the same bytes: accept only the one that is returned.
    return Array.isArray(parts) && encode(parts) === token ? parts : [];
  } catch {
    return [];
  }
}

const tokenProblem =
  (decoded: (token: string) => unknown): Check =>
  (value) =>
    typeof value !== 'string'
      ? ' must be a string'
      : decoded(value) !== undefined
        ? undefined
        : ' must be a token that an earlier page of this operation returned';

/** The field of a request with the token of an earlier page. */
export const PageToken = (
  decoded: (token: string) => unknown,
  { maxLength = MAX_LENGTH, description = '`result.pageToken` of the previous page. Opaque.' } = {},
) => Field(tokenProblem(decoded), { type: 'string', maxLength, description }, { optional: true });
