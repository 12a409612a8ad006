import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer as createTcp, type AddressInfo, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createServer } from 'node:tls';
import { Authority, PemDirectory, type Identity } from '@app/testing/authority';
import { PrivateServer } from '@app/testing/system/private-server';
import { Findings } from './finding';
import {
  brokerServersOf,
  databaseServersOf,
  lookAtOwnCertificate,
  lookAtServers,
  managementServersOf,
  type Server as Endpoint,
} from './servers';

const DAY_MS = 86_400_000;
const YEAR_MS = 365 * DAY_MS;

/** Each line is about a server that really answers, or does not. */
describe('the look at servers', () => {
  const root = mkdtempSync(join(tmpdir(), 'doctor-'));
  const onServer = new PemDirectory(join(root, 'server'));
  const ours = new PemDirectory(join(root, 'ours'));
  const listening: Server[] = [];
  let authority: Authority;
  let postgres: PrivateServer | undefined;

  beforeAll(async () => {
    authority = await Authority.create('ours');
    ours.write({ ca: authority.pem, ...(await authority.issue('client')) });
  });
  afterAll(async () => {
    for (const server of listening) server.close();
    await postgres?.remove();
    rmSync(root, { recursive: true });
  });

  const listen = async (server: Server) => {
    listening.push(server);
    await once(server.listen(0, '127.0.0.1'), 'listening');
    return (server.address() as AddressInfo).port;
  };
  const securely = (identity: Identity) => listen(createServer(identity));
  const look = async (servers: Endpoint[]) => {
    const findings = new Findings('broker');
    await lookAtServers(findings, servers);
    return findings.all.map(({ subject, state, found }) => `${state} ${subject}: ${found}`);
  };
  const files = () => ({ caFile: ours.tlsFiles.caFile });

  it('says when a certificate ends, warns in its last 30 days, and finds a problem in its last week', async () => {
    const [long, short, over] = await Promise.all([
      securely(await authority.issue('localhost', 40 * DAY_MS + 60_000, YEAR_MS)),
      securely(await authority.issue('localhost', 29 * DAY_MS + 60_000, YEAR_MS)),
      securely(await authority.issue('localhost', 6 * DAY_MS + 60_000, YEAR_MS)),
    ]);
    const url = `amqps://a:b@localhost:${long},localhost:${short},localhost:${over}`;
    expect(await look(brokerServersOf(url, files()))).toEqual([
      expect.stringMatching(
        new RegExp(`^ok server localhost:${long}: its certificate ends in 40 days, and its name stands for .*127.0.0.1`),
      ),
      `warning server localhost:${short}: its certificate ends in 29 days`,
      `problem server localhost:${over}: its certificate ends in 6 days`,
    ]);
    expect(await look(managementServersOf(`https://localhost:${short}`, files()))).toEqual([
      `warning server localhost:${short}: its certificate ends in 29 days`,
    ]);
  });

  it('takes no certificate for old that is made for some days, before its last third', async () => {
    const ports = await Promise.all(
      [5, 7, 9].map(async (age) => securely(await authority.issue('localhost', (10 - age) * DAY_MS + 60_000, age * DAY_MS))),
    );
    const found = await look(ports.flatMap((port) => brokerServersOf(`amqps://localhost:${port}`, files())));
    expect(found).toEqual([
      expect.stringMatching(/^ok .* ends in 5 days/),
      expect.stringMatching(/^warning .* ends in 3 days/),
      expect.stringMatching(/^problem .* ends in 1 day$/),
    ]);
  });

  it('finds a problem when the authority of a certificate ends before it, and does not name what was not needed', async () => {
    const ends = await Authority.create('ends', 3 * DAY_MS + 60_000, YEAR_MS);
    const organization = await Authority.create('O=An organization', 3 * DAY_MS + 60_000, YEAR_MS);
    const ended = await Authority.create('ours', -60_000, YEAR_MS, authority);
    const { cert, key } = await authority.issue('localhost', 40 * DAY_MS + 60_000, YEAR_MS);
    const trusted = new PemDirectory(join(root, 'trusted')).write({ ca: ends.pem + organization.pem + authority.pem });
    const ports = [
      await securely(await ends.issue('localhost', 40 * DAY_MS, YEAR_MS)),
      await securely(await organization.issue('localhost', 40 * DAY_MS, YEAR_MS)),
      await securely({ cert: cert + ended.pem, key }),
    ];
    const found = await look(
      ports.flatMap((port) => brokerServersOf(`amqps://localhost:${port}`, { caFile: trusted.file('ca') })),
    );
    expect(found).toEqual([
      `problem server localhost:${ports[0]}: the authority ends of its certificate ends in 3 days`,
      `problem server localhost:${ports[1]}: the authority An organization of its certificate ends in 3 days`,
      expect.stringMatching(/^ok .* its certificate ends in 40 days/),
    ]);
  });

  it('says the same of our own certificate, and that a file has none', async () => {
    const own = new PemDirectory(join(root, 'own'));
    const found = async (leftMs: number) => {
      own.write({ ca: authority.pem, ...(await authority.issue('client', leftMs, YEAR_MS)) });
      const findings = new Findings('broker');
      lookAtOwnCertificate(findings, own.tlsFiles);
      return findings.all.map(({ subject, state, found: text }) => `${state} ${subject}: ${text}`);
    };
    const { certFile, keyFile } = own.tlsFiles;
    expect(await found(40 * DAY_MS + 60_000)).toEqual([`ok file ${certFile}: its certificate ends in 40 days`]);
    expect(await found(6 * DAY_MS + 60_000)).toEqual([`problem file ${certFile}: its certificate ends in 6 days`]);
    expect(await found(-60_000)).toEqual([`problem file ${certFile}: its certificate has ended`]);
    const findings = new Findings('broker');
    for (const file of [undefined, keyFile]) lookAtOwnCertificate(findings, { certFile: file });
    expect(findings.all).toEqual([expect.objectContaining({ state: 'problem', subject: `file ${keyFile}` })]);
  });

  it('says why a certificate is refused', async () => {
    const stranger = await Authority.create('stranger');
    const ports = await Promise.all([
      securely(await authority.issue('localhost', -60_000)),
      securely(await authority.issue('elsewhere')),
      securely(await stranger.issue('localhost')),
    ]);
    const found = await look(ports.flatMap((port) => brokerServersOf(`amqps://localhost:${port}`, files())));
    expect(found).toEqual([
      expect.stringMatching(/^problem .* refused \(certificate has expired\)$/),
      expect.stringMatching(/^problem .* refused \(Hostname\/IP does not match/),
      expect.stringMatching(/^problem .* refused \(unable to/),
    ]);
  });

  it('looks at each node of a URL: without TLS, with a name that is none, and at nobody', async () => {
    const open = await listen(createTcp());
    const gone = await listen(createTcp());
    await new Promise((resolve) => listening.at(-1)?.close(resolve));
    const url = `amqp://127.0.0.1:${open},no-such-host.invalid,127.0.0.1:${gone}`;
    expect(await look([...brokerServersOf(url, {}), ...brokerServersOf(url, {})])).toEqual([
      `ok server 127.0.0.1:${open}: takes connections without TLS`,
      expect.stringMatching(/^problem server no-such-host.invalid:5672: its name does not resolve \((ENOTFOUND|EAI_AGAIN)\)$/),
      `warning server 127.0.0.1:${gone}: cannot be reached (ECONNREFUSED)`,
    ]);
  });

  it('asks PostgreSQL for TLS first', async () => {
    onServer.write({ ca: authority.pem, ...(await authority.issue('localhost', 3 * DAY_MS + 60_000, YEAR_MS)) });
    postgres = await PrivateServer.start('postgres', '--tls', onServer.path);
    const { port } = new URL(postgres.url);
    expect(await look(databaseServersOf(`${postgres.url}?sslmode=verify-full`, ours.tlsFiles))).toEqual([
      `problem server localhost:${port}: its certificate ends in 3 days`,
    ]);
    expect(await look(databaseServersOf(postgres.url, {}))).toEqual([
      expect.stringMatching(new RegExp(`^ok server localhost:${port}: takes connections without TLS`)),
    ]);
  });
});
