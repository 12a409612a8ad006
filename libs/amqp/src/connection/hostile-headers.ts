import type { ChannelModel } from 'amqplib';
import { internalsOfConnection } from '../amqplib-internals';
import type { Observer } from './observer';

const HEADER_FRAME = 2;

/**
 * Lets a connection survive headers that it cannot decode. amqplib decodes nested tables by recursion: about 4,000 levels, which the broker
 * accepts, overflow the stack, and amqplib closes the connection. Each redelivery would do the same until the delivery limit, and the other
 * deliveries of the connection would become dead letters too. Here such a message is delivered without properties.
 */
export function surviveHostileHeaders(model: ChannelModel, log: Observer['log']): void {
  const reader = internalsOfConnection(model);
  const receive = reader.recvFrame.bind(reader);
  reader.recvFrame = () => {
    const frame = reader.rest;
    try {
      return receive();
    } catch (error) {
      if (!(error instanceof RangeError) || frame[0] !== HEADER_FRAME) throw error;
      log('error', { msg: 'the properties of a message could not be decoded', reason: error.message });
      // Bytes of a header frame: type 1, channel 2, length 4, then class 2, weight 2, length of the body 8.
      const size = Number(frame.readBigUInt64BE(11));
      return { id: frame.readUInt16BE(7), channel: frame.readUInt16BE(1), size, fields: { headers: {} } };
    }
  };
}
