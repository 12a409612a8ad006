import { createHash, createHmac, pbkdf2Sync, randomBytes } from 'node:crypto';

/** PostgreSQL's own number. */
const ITERATIONS = 4096;

/** SASLprep, as the driver prepares the password of a login: other spaces become a usual one, and invisible characters go. RFC 4013. */
const OTHER_SPACES = /[\u00A0\u1680\u2000-\u200B\u202F\u205F\u3000]/g;
const INVISIBLE = /\u00AD|\u034F|\u1806|[\u180B-\u180D]|[\u200C-\u200D]|\u2060|[\uFE00-\uFE0F]|\uFEFF/g;
const prepared = (password: string): string => password.replace(OTHER_SPACES, ' ').replace(INVISIBLE, '').normalize('NFKC');

/**
 * What PostgreSQL keeps of a password, which it takes in place of the password. Its log may have the text of a statement, and by default has that of
 * each one that fails.
 */
export function scramVerifier(password: string): string {
  const salt = randomBytes(16);
  const salted = pbkdf2Sync(prepared(password), salt, ITERATIONS, 32, 'sha256');
  const keyOf = (name: string) => createHmac('sha256', salted).update(name).digest();
  const storedKey = createHash('sha256').update(keyOf('Client Key')).digest('base64');
  return `SCRAM-SHA-256$${ITERATIONS}:${salt.toString('base64')}$${storedKey}:${keyOf('Server Key').toString('base64')}`;
}
