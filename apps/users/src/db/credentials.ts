import { createHash, randomBytes } from 'node:crypto';

/** A token as it is stored: whoever reads the table cannot use it. */
export interface NewToken {
  /** Names it on the command line. */
  id: string;
  hash: Buffer;
  expiresAt?: Date;
}

/** An API key: public, and short enough to be read out. */
export const newApiKey = (): string => `key_${randomBytes(12).toString('hex')}`;

/** A token of 256 random bits, and what is stored of it. The secret exists nowhere else. */
export function newToken(expiresAt?: Date): { secret: string; token: NewToken } {
  const secret = `tok_${randomBytes(32).toString('base64url')}`;
  return { secret, token: { id: randomBytes(5).toString('hex'), hash: hashOf(secret), expiresAt } };
}

/** SHA-256 of a token. With 256 random bits in it there is nothing to guess, so a slow hash would protect nothing. */
export const hashOf = (secret: string): Buffer => createHash('sha256').update(secret, 'utf8').digest();
