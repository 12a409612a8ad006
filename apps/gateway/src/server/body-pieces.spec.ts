import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { connect, Socket, type AddressInfo } from 'node:net';
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

  it('keeps no trailers', async () => {
    const server = createServer({ IncomingMessage: Request }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const client = connect((server.address() as AddressInfo).port, '127.0.0.1');
    client.write('POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n0\r\nx-trailer: y\r\n\r\n');
    const [received, response] = (await once(server, 'request')) as [IncomingMessage, ServerResponse];
    await once(received.resume(), 'end');
    expect([received.rawTrailers, received.trailers]).toEqual([[], {}]);
    await once(response.end(), 'close');
    client.destroy();
    await once(server.close(), 'close');
  });
});
