/** The content is not what {@link pack} makes. */
export class Unreadable extends Error {}

/** Bytes of the length of the index. */
const LENGTH = 4;

/**
 * Puts several messages into one: the length of the index as an unsigned 32-bit integer in network byte order, the index as JSON, then the bodies.
 * The index has an array for each message: its head, and the length of its body in bytes.
 */
export function pack(parts: readonly { head: readonly unknown[]; body: Buffer }[]): Buffer {
  const index = Buffer.from(JSON.stringify(parts.map(({ head, body }) => [...head, body.length])));
  const length = Buffer.allocUnsafe(LENGTH);
  length.writeUInt32BE(index.length);
  return Buffer.concat([length, index, ...parts.map(({ body }) => body)]);
}

/**
 * @param most messages
 * @returns the messages; their heads are not validated
 * @throws Unreadable
 */
export function unpack(content: Buffer, most: number): { head: unknown[]; body: Buffer }[] {
  const bodies = content.length >= LENGTH ? LENGTH + content.readUInt32BE(0) : Infinity;
  if (bodies > content.length) throw new Unreadable('the index is incomplete');
  let index: unknown;
  try {
    index = JSON.parse(content.toString('utf8', LENGTH, bodies));
  } catch {
    throw new Unreadable('the index is not JSON');
  }
  if (!Array.isArray(index) || index.length === 0 || index.length > most)
    throw new Unreadable(`the index has no 1-${most} entries`);
  let from = bodies;
  const parts = index.map((entry: unknown) => {
    const bytes: unknown = Array.isArray(entry) ? entry.at(-1) : undefined;
    if (!Number.isSafeInteger(bytes) || (bytes as number) < 0) throw new Unreadable('an entry of the index has no length');
    const body = content.subarray(from, (from += bytes as number));
    return { head: (entry as unknown[]).slice(0, -1), body };
  });
  if (from !== content.length) throw new Unreadable('the lengths in the index do not add up to the content');
  return parts;
}
