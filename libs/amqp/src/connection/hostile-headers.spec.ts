import { dirname, join } from 'node:path';
import { PassThrough } from 'node:stream';
import type { ChannelModel } from 'amqplib';
import type { internalsOfConnection } from '../amqplib-internals';
import { surviveHostileHeaders } from './hostile-headers';

type Reader = ReturnType<typeof internalsOfConnection>;

/** The class is not exported: a test of a connection needs a broker, and this one only bytes. */
const { Connection } = jest.requireActual<{ Connection: new (stream: PassThrough) => Reader }>(
  join(dirname(require.resolve('amqplib')), 'lib/connection'),
);

const BASIC = 60;
const LEVEL_BYTES = 7;
const shortString = (text: string) => Buffer.from([text.length, ...Buffer.from(text)]);

/** Tables in tables, as many as amqplib cannot decode. */
function nestedTables(levels: number): Buffer {
  const tables = Buffer.alloc(4 + levels * LEVEL_BYTES);
  tables.writeUInt32BE(levels * LEVEL_BYTES);
  for (let at = 4; at < tables.length; at += LEVEL_BYTES) {
    tables.write('\u0001aF', at, 'latin1');
    tables.writeUInt32BE(tables.length - at - LEVEL_BYTES, at + 3);
  }
  return tables;
}

/** A header frame of channel 3, for a body of 5 bytes, with two properties before the headers and two after them. */
function headerFrame(headers: Buffer, userId: string): Buffer {
  const properties = [
    shortString('application/json'),
    shortString('utf-8'),
    headers,
    shortString('answers'),
    shortString(userId),
  ];
  const payload = Buffer.concat([Buffer.alloc(14), ...properties]);
  payload.writeUInt16BE(BASIC);
  payload.writeBigUInt64BE(5n, 4);
  payload.writeUInt16BE(0x8000 | 0x4000 | 0x2000 | 0x0200 | 0x0010, 12);
  const frame = Buffer.concat([Buffer.from([2, 0, 3, 0, 0, 0, 0]), payload, Buffer.from([0xce])]);
  frame.writeUInt32BE(payload.length, 3);
  return frame;
}

const bodyFrame = Buffer.from([3, 0, 3, 0, 0, 0, 2, 0x7b, 0x7d, 0xce]);

describe(surviveHostileHeaders.name, () => {
  let lines: object[];
  let reader: Reader;

  beforeEach(() => {
    jest.useFakeTimers();
    lines = [];
    reader = new Connection(new PassThrough());
    surviveHostileHeaders({ connection: reader } as unknown as ChannelModel, (level, line) => lines.push({ level, ...line }));
  });
  afterEach(() => jest.useRealTimers());

  const receive = (...frames: Buffer[]) => {
    reader.rest = Buffer.concat(frames);
    return frames.map(() => reader.recvFrame());
  };
  const fields = { contentType: 'application/json', contentEncoding: 'utf-8', replyTo: 'answers', userId: 'account' };

  it('delivers a message without its headers, with its other properties, and what comes after it', () => {
    expect(receive(headerFrame(nestedTables(18_000), 'account'), bodyFrame)).toEqual([
      { id: BASIC, channel: 3, size: 5, fields: expect.objectContaining({ ...fields, headers: {} }) },
      { channel: 3, content: Buffer.from('{}') },
    ]);
    expect(reader.rest).toHaveLength(0);
  });

  it('leaves headers that can be decoded, and throws for a frame that is broken otherwise', () => {
    const [{ fields: decoded }] = receive(headerFrame(nestedTables(1), 'account')) as { fields: object }[];
    expect(decoded).toMatchObject({ ...fields, headers: { a: {} } });
    expect(() => receive(Buffer.from([9, 0, 0, 0, 0, 0, 0, 0xce]))).toThrow('Unknown frame type 9');
    expect(lines).toEqual([]);
  });

  it('writes one line at once, and one a minute that counts the others with their accounts', () => {
    const hostile = (account: string) => receive(headerFrame(nestedTables(18_000), account));
    const line = (messages: number, ...publishers: string[]) => ({
      level: 'warn',
      msg: 'the headers of messages could not be decoded',
      messages,
      publishers,
    });
    hostile('first');
    for (let message = 0; message < 30; message++) hostile(message % 2 ? 'second' : 'third');
    expect(lines).toEqual([line(1, 'first')]);
    jest.advanceTimersByTime(60_000);
    expect(lines.slice(1)).toEqual([line(30, 'third', 'second')]);
    jest.advanceTimersByTime(120_000);
    hostile('first');
    expect(lines.slice(2)).toEqual([line(1, 'first')]);
  });
});
