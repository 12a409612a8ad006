import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Logger } from '@nestjs/common';
import { RabbitConnection } from '@app/amqp/connection/connection';
import { openConnection } from '@app/amqp/connection/open-connection';
import { silent, type Observer } from '@app/amqp/connection/observer';
import { connectWhenReady } from '@app/postgres/connect';
import { createDataSource } from '@app/postgres/connections/data-source';
import { TlsClient } from '@app/postgres/connections/tls-client';
import { ManagementApi } from '@app/rabbitmq-admin/management-api';
import type { TlsFiles } from '@app/runtime/settings/tls-files';
import { Authority, PemDirectory } from '@app/testing/authority';
import { eventually } from '@app/testing/eventually';
import { keepCalling } from '@app/testing/system/keep-calling';
import { PrivateServer } from '@app/testing/system/private-server';
import { notification } from '@app/testing/system/notification';
import { System } from '@app/testing/system/system';

/** RabbitMQ, its management API and PostgreSQL take only TLS here, and only from clients with a certificate. */
describe('a system over TLS', () => {
  const root = mkdtempSync(join(tmpdir(), 'tls-'));
  const onServers = new PemDirectory(join(root, 'servers'));
  const onClients = new PemDirectory(join(root, 'clients'));
  let first: Authority;
  let broker: PrivateServer;
  let database: PrivateServer;
  let system: System;

  beforeAll(async () => {
    first = await Authority.create('first');
    onServers.write({ ca: first.pem, ...(await first.issue('localhost')) });
    onClients.write({ ca: first.pem, ...(await first.issue('client')) });
    [broker, database] = await Promise.all([
      PrivateServer.start('rabbitmq', '--management', '--tls', onServers.path),
      PrivateServer.start('postgres', '--tls', onServers.path),
    ]);
    const { caFile, certFile, keyFile } = onClients.tlsFiles;
    const secret = (name: string, value: string) => {
      const path = join(root, name);
      writeFileSync(path, `${value}\n`, { mode: 0o600 });
      return path;
    };
    system = await System.start({
      wholeSetUp: true,
      amqpUrl: broker.url,
      databaseUrl: database.url,
      env: {
        AMQP_URL: '',
        AMQP_URL_FILE: secret('amqp-url', behindDead(broker.url)),
        DATABASE_URL: '',
        DATABASE_URL_FILE: secret('database-url', `${behindDead(database.url)}?sslmode=verify-full`),
        RABBITMQ_MANAGEMENT_URL_FILE: secret('management-url', behindDead(broker.managementUrl)),
        AMQP_CA_FILE: caFile,
        AMQP_CERT_FILE: certFile,
        AMQP_KEY_FILE: keyFile,
        DATABASE_CA_FILE: caFile,
        DATABASE_CERT_FILE: certFile,
        DATABASE_KEY_FILE: keyFile,
      },
    });
  });
  afterAll(async () => {
    await system?.stop();
    await Promise.all([broker?.remove(), database?.remove()]);
    rmSync(root, { recursive: true });
  });

  /** A list whose first server refuses. */
  const behindDead = (url: string) => url.replace(new URL(url).host, (host) => `localhost:1,${host}`);
  const get = () => system.call('notifications/get', { organizationId: 'org', userId: 'ada' });
  const management = () => new ManagementApi(broker.managementUrl, broker.url, { tlsFiles: onClients.tlsFiles });
  const reload = () => database.order('reload');
  /** RabbitMQ looks for replaced files itself, so the only signal is a connection. */
  const brokerTakes = async (tlsFiles: TlsFiles) => {
    const model = await openConnection({ url: broker.url, tlsFiles, name: 'probe' }).catch(() => undefined);
    await model?.close();
    return model !== undefined;
  };

  it('answers every call while every certificate is replaced, and uses the new ones without a restart', async () => {
    const wrong: unknown[] = [];
    let answered = 0;
    const end = keepCalling(8, 200, async (client, call) => {
      const { status, body } = await add(`${client} ${call}`);
      answered++;
      if (status !== 200) wrong.push(body);
    });
    const someMore = async () => {
      const before = answered;
      await eventually(() => answered > before + 50);
    };
    const second = await Authority.create('second');
    const both = first.pem + second.pem;
    const ofFirst = new PemDirectory(join(root, 'first')).write({ ca: both, ...(await first.issue('client')) });
    const ofSecond = new PemDirectory(join(root, 'second')).write({ ca: both, ...(await second.issue('client')) });
    onServers.write({ ca: both });
    onClients.write({ ca: both });
    await reload();
    await eventually(() => brokerTakes(ofSecond.tlsFiles));
    await someMore();
    onServers.write(await second.issue('localhost'));
    onClients.write(await second.issue('client'));
    await reload();
    // A process keeps its connections. Connections that no call has used for a second end here, and the calls below need more than are left. The pause
    // lets the others become idle for so long.
    await eventually(
      async () => {
        await onDatabase(`
          SELECT pg_terminate_backend(pid) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid)
          WHERE ssl AND application_name = 'notifications' AND state = 'idle' AND state_change < clock_timestamp() - interval '1 s'`);
        for (const { status } of await Promise.all(Array.from({ length: 20 }, get))) if (status !== 200) wrong.push(status);
        return (await issuers()).has('/CN=second');
      },
      60_000,
      1500,
    );
    expect(await issuers()).toContain('/CN=first');
    await someMore();
    onServers.write({ ca: second.pem });
    onClients.write({ ca: second.pem });
    await reload();
    await eventually(async () => !(await brokerTakes(ofFirst.tlsFiles)));
    await someMore();
    await end();
    expect(wrong).toEqual([]);

    // The earlier connections live on. New ones know the first authority no more.
    const earlier = await connections();
    for (const name of earlier) await management().delete(`connections/${encodeURIComponent(name)}`);
    await onDatabase('SELECT pg_terminate_backend(pid) FROM pg_stat_ssl WHERE ssl AND pid <> pg_backend_pid()');
    await eventually(async () => (await get()).status === 200 && (await add('last')).status === 200);
    expect(await issuers()).toEqual(new Set(['/CN=second']));
    await eventually(async () => {
      const now = await connections();
      return now.length >= earlier.length && !now.some((name) => earlier.includes(name));
    });
    for (const service of Object.values(system.services)) expect(service.exitCode).toBeUndefined();
  });

  const add = (notificationId: string) => system.call('notifications/add', notification({ notificationId }));

  const connections = async () => ((await management().get<{ name: string }[]>('connections')) ?? []).map(({ name }) => name);

  async function onDatabase<T>(sql: string): Promise<T[]> {
    const client = new TlsClient({ connectionString: database.url, tlsFiles: onClients.tlsFiles });
    await client.connect();
    try {
      return (await client.query(sql)).rows as T[];
    } finally {
      await client.end();
    }
  }

  /** Authorities of the client certificates of all connections to PostgreSQL except that of the question. */
  const issuers = async () =>
    new Set(
      (await onDatabase<{ issuer_dn: string }>('SELECT issuer_dn FROM pg_stat_ssl WHERE ssl AND pid <> pg_backend_pid()')).map(
        ({ issuer_dn }) => issuer_dn,
      ),
    );

  describe('refuses and says why', () => {
    let other: Authority;
    beforeAll(async () => void (other = await Authority.create('other')));

    it.each<[string, () => Promise<[TlsFiles, host?: string]>, broker: RegExp, database: RegExp]>([
      [
        'another authority',
        async () => [
          { ...onClients.tlsFiles, caFile: new PemDirectory(join(root, 'other')).write({ ca: other.pem }).file('ca') },
        ],
        /self-signed certificate in certificate chain|unable to verify the first certificate|unable to get local issuer/,
        /self-signed certificate in certificate chain|unable to verify the first certificate|unable to get local issuer/,
      ],
      [
        'a missing client certificate',
        async () => [{ caFile: onClients.file('ca') }],
        /certificate required/,
        /28000: the server refuses the password or the certificate/,
      ],
      [
        'a host name that the certificate lacks',
        async () => [onClients.tlsFiles, '127.0.0.1'],
        /IP: 127\.0\.0\.1 is not in the cert's list/,
        /IP: 127\.0\.0\.1 is not in the cert's list/,
      ],
      [
        'an expired certificate',
        async () => {
          const expired = await Authority.create('expired');
          onServers.write(await expired.issue('localhost', -1));
          await reload();
          await eventually(async () => !(await brokerTakes(onClients.tlsFiles)));
          return [
            { ...onClients.tlsFiles, caFile: new PemDirectory(join(root, 'expired')).write({ ca: expired.pem }).file('ca') },
          ];
        },
        /certificate has expired/,
        /certificate has expired/,
      ],
    ])('%s', async (_, prepare, ofBroker, ofDatabase) => {
      const [tlsFiles, host] = await prepare();
      const urlOf = (server: PrivateServer) => server.url.replace('localhost', host ?? 'localhost');
      const lines: string[] = [];
      const observer: Observer = { ...silent, log: (_level, fields) => void lines.push(JSON.stringify(fields)) };
      const connection = new RabbitConnection({ url: urlOf(broker), tlsFiles, name: 'test' }, observer);
      connection.start();
      await eventually(() => lines.length > 0);
      await connection.close();
      expect(lines[0]).toMatch(ofBroker);
      // OpenSSL's own messages have addresses in its source.
      expect(lines[0]).not.toContain('routines');

      const waiting: string[] = [];
      Logger.overrideLogger({ log: () => undefined, error: () => undefined, warn: (line: string) => void waiting.push(line) });
      const source = createDataSource({
        name: 'test',
        url: urlOf(database),
        tlsFiles,
        schema: 'users',
        migrations: [],
        poolSize: 1,
      });
      const stopping = new AbortController();
      const connected = connectWhenReady(source, stopping.signal);
      await eventually(() => waiting.length > 0);
      stopping.abort();
      await connected;
      expect(waiting[0]).toMatch(ofDatabase);

      const api = new ManagementApi(broker.managementUrl.replace('localhost', host ?? 'localhost'), broker.url, { tlsFiles });
      await expect(api.get('overview')).rejects.toThrow(ofBroker);
      expect([...lines, ...waiting].join()).not.toContain(new URL(broker.url).password);
    });
  });
});
