import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Readable } from 'node:stream';
import { ManagementApi, TooLong } from './management-api';

const PIECE = Buffer.alloc(1024 * 1024, ' ');

function* pieces() {
  for (let piece = 0; piece < 64; piece++) yield PIECE;
}

describe(ManagementApi.name, () => {
  let server: Server;
  let asked = 0;

  beforeAll(async () => {
    server = createServer((_, response) => {
      asked++;
      Readable.from(pieces()).pipe(response);
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  });
  afterAll(() => {
    server.closeAllConnections();
    server.close();
  });

  it('does not read a very long answer, and asks no other node for it', async () => {
    const host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
    const api = new ManagementApi(`http://${host},127.0.0.2:2`, 'amqp://user:secret@127.0.0.1');
    const error = await api.get('queues/%2F').catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(TooLong);
    expect((error as Error).message).toBe('the management API answers more than 32 MiB to GET queues/%2F');
    expect(asked).toBe(1);
  });
});
