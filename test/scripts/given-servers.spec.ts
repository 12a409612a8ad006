import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type AddressInfo, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Script } from './script';

const PROGRAM = `
  import { checkGivenServer } from './scripts/servers/given-servers.mjs';
  const answer = await checkGivenServer(process.argv[1], JSON.parse(process.argv[2])).catch((error) => error.message);
  console.log(JSON.stringify(answer));
`;

const check = (name: string, env: Record<string, string>) => new Script(PROGRAM, [name, JSON.stringify(env)]).next();

describe('a server that the user names', () => {
  let server: Server;
  let port: number;
  beforeAll(async () => {
    server = createServer((socket) => socket.end()).listen(0, '127.0.0.1');
    await once(server, 'listening');
    ({ port } = server.address() as AddressInfo);
  });
  afterAll(async () => {
    await Script.endAll();
    server.close();
  });

  it('is used when it takes connections', async () => {
    expect(await check('AMQP_URL', { AMQP_URL: `amqp://user:secret@127.0.0.1:${port}` })).toBe(true);
  });

  it('is named by a file as well, whose content is not shown', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'given-'));
    const path = join(directory, 'url');
    writeFileSync(path, `amqp://user:secret@127.0.0.1:${port}\n`);
    expect(await check('AMQP_URL', { AMQP_URL_FILE: path })).toBe(true);
    expect(await check('AMQP_URL', { AMQP_URL_FILE: path, AMQP_URL: 'amqp://x' })).toBe(
      'AMQP_URL and AMQP_URL_FILE are both set: only one of them may be.',
    );
    writeFileSync(path, 'secret');
    expect(await check('AMQP_URL', { AMQP_URL_FILE: path })).toContain('AMQP_URL is not a valid URL');
    rmSync(directory, { recursive: true });
    expect(await check('AMQP_URL', { AMQP_URL_FILE: path })).toBe('The file of AMQP_URL_FILE cannot be read (ENOENT).');
  });

  it('is used when one of several servers takes connections', async () => {
    expect(await check('DATABASE_URL', { DATABASE_URL: `postgres://u:secret@127.0.0.1:1,127.0.0.1:${port}/name` })).toBe(true);
  });

  it('is none when nothing is set', async () => {
    expect(await check('DATABASE_URL', { AMQP_URL: 'amqp://elsewhere' })).toBe(false);
  });

  it('must be named for all when it is named for one service', async () => {
    expect(await check('DATABASE_URL', { USERS_DATABASE_URL: 'postgres://x' })).toBe(
      'USERS_DATABASE_URL is set but DATABASE_URL is not: set both, or neither to have PostgreSQL started for you.',
    );
  });

  it.each(['secret', 'https://user:secret@127.0.0.1', 'amqp://'])(
    'must have a URL of its kind, which is not shown: %s',
    async (url) => {
      expect(await check('AMQP_URL', { AMQP_URL: url })).toBe(
        'AMQP_URL is not a valid URL: it must look like amqp:// or amqps://user:password@host:port/name.',
      );
    },
  );

  it('may have several hosts, of which one takes connections', async () => {
    const hosts = `127.0.0.1:1,127.0.0.1:${port}`;
    expect(await check('AMQP_URL', { AMQP_URL: `amqp://user:secret@${hosts}/v` })).toBe(true);
  });

  it('must take connections, and its password is not shown', async () => {
    expect(await check('DATABASE_URL', { DATABASE_URL: 'postgres://user:secret@127.0.0.1:1/name' })).toBe(
      'PostgreSQL cannot be reached at the address in DATABASE_URL (ECONNREFUSED); start it, correct DATABASE_URL, or unset it to have PostgreSQL started for you.',
    );
  });
});
