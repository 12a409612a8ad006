import type { ChannelModel } from 'amqplib';
import { internalsOfConnection } from '../amqplib-internals';
import type { Observer } from './observer';

const HEADER_FRAME = 2;
/** Bytes of a header frame: type 1, channel 2, size 4, then class 2, weight 2, length of the body 8, flags of the properties 2, the properties. */
const SIZE_AT = 3;
const FLAGS_AT = 19;
const PROPERTIES_AT = 21;
/** Flags of the short strings that stand before the table of headers. */
const BEFORE_HEADERS = [0x8000, 0x4000];
const LOG_EVERY_MS = 60_000;
/** Most accounts in a line. */
const MAX_ACCOUNTS = 20;

/**
 * Lets a connection survive headers that it cannot decode. amqplib decodes nested tables by recursion: about 4,000 levels, which the broker
 * accepts, overflow the stack, and amqplib closes the connection. Each redelivery would do the same until the delivery limit, and the other
 * deliveries of the connection would become dead letters too. Here such a message is delivered without headers. Its other properties stay: by
 * `user_id` it counts for its account.
 */
export function surviveHostileHeaders(model: ChannelModel, log: Observer['log']): void {
  const reader = internalsOfConnection(model);
  const receive = reader.recvFrame.bind(reader);
  const lines = new HostileLines(log);
  reader.recvFrame = () => {
    const frame = reader.rest;
    try {
      return receive();
    } catch (error) {
      // By its name: where several realms are, as in Jest, that of the builtin in which the stack ends has a class of its own.
      if ((error as Error).name !== RangeError.name || frame[0] !== HEADER_FRAME) throw error;
      const { rest } = reader;
      reader.rest = withoutHeaders(frame.subarray(0, frame.length - rest.length));
      const received = receive() as { fields: { userId?: string } };
      reader.rest = rest;
      lines.count(received.fields.userId);
      return received;
    }
  };
}

function withoutHeaders(frame: Buffer): Buffer {
  const flags = frame.readUInt16BE(FLAGS_AT);
  let at = PROPERTIES_AT;
  for (const flag of BEFORE_HEADERS) if (flags & flag) at += 1 + frame[at];
  const length = frame.readUInt32BE(at);
  const changed = Buffer.concat([frame.subarray(0, at), Buffer.alloc(4), frame.subarray(at + 4 + length)]);
  changed.writeUInt32BE(frame.readUInt32BE(SIZE_AT) - length, SIZE_AT);
  return changed;
}

/** A line for the first message, and then one a minute that counts the others: anyone who may publish can send any number of them. */
class HostileLines {
  private messages = 0;
  private readonly accounts = new Set<string>();
  private timer?: NodeJS.Timeout;

  constructor(private readonly log: Observer['log']) {}

  count(account = 'without user_id'): void {
    this.messages++;
    if (this.accounts.size < MAX_ACCOUNTS) this.accounts.add(account);
    if (!this.timer) this.write();
  }

  private write(): void {
    this.timer = undefined;
    if (this.messages === 0) return;
    const { messages, accounts } = this;
    this.log('warn', { msg: 'the headers of messages could not be decoded', messages, publishers: [...accounts] });
    this.messages = 0;
    accounts.clear();
    this.timer = setTimeout(() => this.write(), LOG_EVERY_MS).unref();
  }
}
