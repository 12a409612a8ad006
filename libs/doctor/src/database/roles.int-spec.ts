import { PrivateServer } from '@app/testing/system/private-server';
import { Findings } from '../finding';
import { lookAs } from './roles';

describe('the look at a database', () => {
  let server: PrivateServer;

  beforeAll(async () => {
    server = await PrivateServer.start('postgres');
  }, 30_000);
  afterEach(async () => {
    jest.useRealTimers();
    await server.order('resume');
  });
  afterAll(() => server?.remove());

  it.each<[string, Partial<URL>, string, string]>([
    [
      'the login is refused, and not that a certificate is wrong',
      { username: 'nobody' },
      '28000: the server refuses the password or the certificate',
      'correct user and password of the URL, or run "npm run setup" with it',
    ],
    [
      'the database does not exist',
      { pathname: '/nothing' },
      '3D000: the server has no such database',
      'correct the name of the database in the URL, or create it',
    ],
    [
      'the database takes no connections',
      { pathname: '/template0' },
      '55000: the database takes no connections',
      'run ALTER DATABASE … ALLOW_CONNECTIONS true',
    ],
  ])('says that %s', async (_, part, found, action) => {
    const url = Object.assign(new URL(server.url), part);
    for (const hosts of [url.host, `${url.host},127.0.0.1:1`]) {
      const findings = new Findings('database');
      await lookAs(findings, 'users', { url: url.href.replace(url.host, hosts), tlsFiles: {} }, async () => undefined);
      expect(findings.all).toMatchObject([{ found: expect.stringContaining(found) as string, action }]);
    }
  });

  it('does not compile its statements', async () => {
    let rows: unknown[] = [];
    await lookAs(new Findings('database'), 'users', { url: server.url, tlsFiles: {} }, async (client) => {
      ({ rows } = await client.query('SHOW jit'));
    });
    expect(rows).toEqual([{ jit: 'off' }]);
  });

  it('ends when the database answers nothing more', async () => {
    // The timers of sockets are not faked.
    jest.useFakeTimers({ doNotFake: ['nextTick', 'setImmediate', 'queueMicrotask', 'performance', 'Date'] });
    const findings = new Findings('database');
    let [paused, ended] = [false, false];
    const looked = lookAs(findings, 'users', { url: server.url, tlsFiles: {} }, async (client) => {
      await server.order('pause');
      paused = true;
      await client.query('SELECT 1');
    }).finally(() => (ended = true));
    while (!paused) await new Promise(setImmediate);
    for (let second = 0; second < 60 && !ended; second++) {
      await jest.advanceTimersByTimeAsync(1000);
      await new Promise(setImmediate);
    }
    expect(ended).toBe(true);
    await looked;
    expect(findings.all).toMatchObject([
      { subject: 'role users', state: 'problem', found: 'the database does not answer any more (Query read timeout)' },
    ]);
  });
});
