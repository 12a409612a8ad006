import type { ChannelModel } from 'amqplib';
import type { Observer } from './observer';

const HEADER_FRAME = 2;

/** What of amqplib's connection lies below its public types. */
interface FrameReader {
  /** Bytes received and not decoded. */
  rest: Buffer;
  /** Decodes the next frame; reads on from the socket, and calls itself again, when `rest` does not hold a whole one. */
  recvFrame(): unknown;
}

/**
 * Lets a connection survive headers that it cannot decode. amqplib decodes nested tables by recursion: some 4,000 levels, which the broker
 * passes on, overflow the stack, and it closes the connection. Delivered again the message would do so again, up to the delivery limit, and
 * take everything that was delivered beside it along into the dead letters. Here it becomes a message without properties.
 */
export function surviveHostileHeaders(model: ChannelModel, log: Observer['log']): void {
  const reader = model.connection as unknown as FrameReader;
  const receive = reader.recvFrame.bind(reader);
  reader.recvFrame = () => {
    const frame = reader.rest;
    try {
      return receive();
    } catch (error) {
      if (!(error instanceof RangeError) || frame[0] !== HEADER_FRAME) throw error;
      log('error', { msg: 'the properties of a message could not be decoded', reason: error.message });
      // Type 1 byte, channel 2, length 4; then class 2, weight 2, length of the body 8.
      const size = Number(frame.readBigUInt64BE(11));
      return { id: frame.readUInt16BE(7), channel: frame.readUInt16BE(1), size, fields: { headers: {} } };
    }
  };
}
