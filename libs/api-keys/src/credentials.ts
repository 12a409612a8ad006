import { createHash, randomBytes } from 'node:crypto';

/** A token as it is stored. Its hash cannot be used as a token. */
export interface NewToken {
  /** Name of the token on the command line. */
  id: string;
  hash: Buffer;
  expiresAt?: Date;
}

/** A new API key: public, and short enough to be read aloud. */
export const newApiKey = (): string => `key_${randomBytes(12).toString('hex')}`;

/** A token of 256 random bits, and its stored form. The secret exists nowhere else. */
export function newToken(expiresAt?: Date): { secret: string; token: NewToken } {
  const secret = `tok_${randomBytes(32).toString('base64url')}`;
  return { secret, token: { id: randomBytes(5).toString('hex'), hash: hashOf(secret), expiresAt } };
}

/** SHA-256 of a token. A token has 256 random bits and cannot be guessed, so a slow hash would add no protection. */
export const hashOf = (secret: string): Buffer => createHash('sha256').update(secret, 'utf8').digest();
