import { randomUUID } from 'node:crypto';

const HEX_DIGITS_OF_TIME = 12;
/** Place after the digit of the version. */
const AFTER_VERSION = 15;

/**
 * A new id for a message: a UUID of version 7 (RFC 9562), which begins with the time in milliseconds and has 74 random bits. The `message_id` of a
 * command becomes the key of its notification. Keys of one time are neighbours in the index, so that few of its pages change. PostgreSQL writes
 * each page as a whole into its log at the first change after a checkpoint.
 */
export function newMessageId(): string {
  const time = Date.now().toString(16).padStart(HEX_DIGITS_OF_TIME, '0');
  return `${time.slice(0, 8)}-${time.slice(8)}-7${randomUUID().slice(AFTER_VERSION)}`;
}
