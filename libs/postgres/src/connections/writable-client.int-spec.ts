import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { requiredEnv } from '@app/testing/required-env';
import { connectWhenReady } from '../connect';
import { createDataSource } from './data-source';

/** BackendKeyData: its type, its length, and the process whose statements a cancel request with the key ends. */
const KEY_DATA = Buffer.from([0x4b, 0, 0, 0, 12]);

/** The error of PgBouncer 1.18: severity, SQLSTATE and message. */
const refusal = (text: string): Buffer => {
  const fields = Buffer.from(`SFATAL\0C08P01\0M${text}\0\0`);
  const head = Buffer.alloc(5, 'E');
  head.writeInt32BE(fields.length + 4, 1);
  return Buffer.concat([head, fields]);
};

describe('a connection pooler', () => {
  let server: Server;
  afterEach(() => new Promise((resolve) => server.close(resolve)));

  const start = async (onConnection: (client: Socket) => void): Promise<() => Promise<boolean>> => {
    server = createServer(onConnection);
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const url = new URL(requiredEnv('TEST_DATABASE_URL'));
    url.port = String((server.address() as AddressInfo).port);
    const settings = { name: 'pooler test', url: url.href, schema: 'public', migrations: [], poolSize: 1 };
    return () => connectWhenReady(createDataSource(settings), new AbortController().signal);
  };

  it('is named at start when it refuses the settings of the connection', async () => {
    const connectTo = await start((client) => {
      client.on('error', () => undefined);
      client.once('data', () => client.end(refusal('unsupported startup parameter: statement_timeout')));
    });
    await expect(connectTo()).rejects.toThrow('The server in DATABASE_URL is a connection pooler such as PgBouncer');
  });

  it('is named at start when it ignores them', async () => {
    const target = new URL(requiredEnv('TEST_DATABASE_URL'));
    const connectTo = await start((client) => {
      const backend = connect(Number(target.port), target.hostname);
      for (const [socket, other] of [
        [client, backend],
        [backend, client],
      ] as const)
        socket.on('error', () => undefined).on('close', () => other.destroy());
      client.pipe(backend);
      backend.on('data', (data: Buffer) => {
        const at = data.indexOf(KEY_DATA);
        // As PgBouncer: with a key of its own.
        if (at >= 0) data.writeInt32BE(-1, at + KEY_DATA.length);
        client.write(data);
      });
    });
    await expect(connectTo()).rejects.toThrow('The server in DATABASE_URL is a connection pooler such as PgBouncer');
  });
});
