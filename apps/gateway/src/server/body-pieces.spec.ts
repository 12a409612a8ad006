import type { IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import { requestsInPieces } from './body-pieces';

const KIBIBYTE = 1024;

describe(requestsInPieces.name, () => {
  const arrived = jest.fn();
  const Request = requestsInPieces(arrived);
  let request: IncomingMessage;
  let read: Buffer[];

  beforeEach(() => {
    arrived.mockClear();
    request = new Request(new Socket());
    read = [];
    request.on('data', (piece: Buffer) => read.push(piece));
  });

  const push = async (...pieces: Buffer[]) => {
    for (const piece of pieces) request.push(piece);
    const ended = new Promise((resolve) => request.on('end', resolve));
    request.push(null);
    await ended;
  };

  it('takes many small pieces for few large ones, with all bytes in their order', async () => {
    const pieces = Array.from({ length: 100 * KIBIBYTE }, (_, at) => Buffer.from([at % 251]));
    await push(...pieces);
    expect(Buffer.concat(read).equals(Buffer.concat(pieces))).toBe(true);
    expect(read).toHaveLength(7);
    const kept = read.reduce((sum, { buffer }) => sum + buffer.byteLength, 0);
    expect(kept).toBeLessThan(2 * 100 * KIBIBYTE);
    expect(arrived).toHaveBeenCalledTimes(pieces.length - 1);
    expect(arrived).toHaveBeenLastCalledWith(request, 1);
  });

  it('keeps pieces of any sizes in their order', async () => {
    const sizes = [1, 64 * KIBIBYTE, 3, 10 * KIBIBYTE, 10 * KIBIBYTE, 1, 16 * KIBIBYTE, 5];
    const pieces = sizes.map((size, at) => Buffer.alloc(size, at));
    await push(...pieces);
    expect(Buffer.concat(read).equals(Buffer.concat(pieces))).toBe(true);
  });

  it('passes a body of one piece on as it is, and counts nothing', async () => {
    const body = Buffer.from('{}');
    await push(body);
    expect(read).toEqual([body]);
    expect(read[0].buffer).toBe(body.buffer);
    expect(arrived).not.toHaveBeenCalled();
  });

  it('ends without a body', async () => {
    await push();
    expect(read).toEqual([]);
  });
});
