import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client } from 'pg';
import { RabbitConnection } from '@app/amqp/connection';
import { databaseObstacle } from '@app/postgres/connect';
import { createDataSource } from '@app/postgres/data-source';
import { ManagementApi } from '@app/rabbitmq-admin/management-api';
import type { TlsFiles } from '@app/runtime/tls-files';
import { Authority, PemDirectory } from '@app/testing/authority';
import { eventually } from '@app/testing/eventually';
import { keepCalling } from '@app/testing/keep-calling';
import { PrivateServer } from '@app/testing/private-server';
import { System } from '@app/testing/system';

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
        AMQP_URL_FILE: secret('amqp-url', broker.url),
        DATABASE_URL: '',
        DATABASE_URL_FILE: secret('database-url', `${database.url}?sslmode=verify-full`),
        RABBITMQ_MANAGEMENT_URL_FILE: secret('management-url', broker.managementUrl),
        AMQP_CA_FILE: caFile,
        AMQP_CERT_FILE: certFile,
        AMQP_KEY_FILE: keyFile,
        DATABASE_CA_FILE: caFile,
        DATABASE_CERT_FILE: certFile,
        DATABASE_KEY_FILE: keyFile,
      },
    });
  }, 60_000);
  afterAll(async () => {
    await system?.stop();
    await Promise.all([broker?.remove(), database?.remove()]);
    rmSync(root, { recursive: true });
  });

  it('runs', async () => {
    console.log(system.setUpOutput);
  });
});
