import type { Channel, Options } from 'amqplib';
import { BODY } from './stubbed-users';

/** A value of {@link publishInvalidUtf8}. */
export const MARK = 'Q'.repeat(200);

/** Publishes frames that amqplib itself would not write: they are changed on their way to the socket. */
function publishChanged(channel: Channel, options: Options.Publish, change: (frame: Buffer) => void): void {
  const { connection, ch } = channel as unknown as {
    connection: { channels: { buffer: { write(frame: Buffer): boolean } }[] };
    ch: number;
  };
  const { buffer } = connection.channels[ch];
  const { write } = buffer;
  buffer.write = (frame) => {
    change(frame);
    return write.call(buffer, frame);
  };
  try {
    channel.publish('commands', 'users.add.v1', Buffer.from(JSON.stringify(BODY)), options);
  } finally {
    buffer.write = write;
  }
}

/** Each byte of MARK becomes an invalid byte. Decoded, an invalid byte takes three bytes. */
export const publishInvalidUtf8 = (channel: Channel, options: Options.Publish) =>
  publishChanged(channel, options, (frame) => {
    for (let at = frame.indexOf(MARK); at >= 0; at = frame.indexOf(MARK)) frame.fill(0xff, at, at + MARK.length);
  });

/** Publishes a header of nested tables. @param userId the account of the channel */
export function publishNestedHeader(channel: Channel, levels: number, userId: string): void {
  const LEVEL_BYTES = 7;
  const placeholder = Buffer.alloc(levels * LEVEL_BYTES, 'Q');
  const tables = Buffer.alloc(placeholder.length);
  for (let at = 0; at < tables.length; at += LEVEL_BYTES) {
    tables.write('\u0001aF', at, 'latin1');
    tables.writeUInt32BE(tables.length - at - LEVEL_BYTES, at + 3);
  }
  publishChanged(channel, { userId, headers: { 'x-api-key': 'key', deep: placeholder.toString() } }, (frame) => {
    const at = frame.indexOf(placeholder);
    if (at < 0) return;
    // The type byte stands before the length: change the string into a table.
    frame.write('F', at - 5);
    tables.copy(frame, at);
  });
}
