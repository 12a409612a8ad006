import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { databaseUrl } from './database-url';
import { Settings, type ConfigError } from './settings';
import { brokerTlsSettings, brokerUrl, databaseTlsSettings } from './tls-settings';

class BrokerConfig extends Settings({ url: brokerUrl('AMQP_URL', 'Broker.'), ...brokerTlsSettings }) {}
class DatabaseConfig extends Settings({ url: databaseUrl('DATABASE_URL', 'Database.'), ...databaseTlsSettings }) {}

describe('settings of TLS', () => {
  let directory: string;
  let pem: string;
  beforeAll(() => {
    directory = mkdtempSync(join(tmpdir(), 'tls-settings-'));
    pem = join(directory, 'file.pem');
    writeFileSync(pem, 'pem');
  });
  afterAll(() => rmSync(directory, { recursive: true }));

  const problems = (read: () => unknown): string[] => {
    try {
      read();
      return [];
    } catch (error) {
      return (error as ConfigError).problems;
    }
  };

  it('demands amqps: for the files of RabbitMQ', () => {
    const read = (env: NodeJS.ProcessEnv) => problems(() => new BrokerConfig(env));
    expect(read({ AMQP_URL: 'amqp://host' })).toEqual([]);
    expect(read({ AMQP_URL: 'amqps://host' })).toEqual([]);
    expect(read({ AMQP_URL: 'amqps://host', AMQP_CA_FILE: pem, AMQP_CERT_FILE: pem, AMQP_KEY_FILE: pem })).toEqual([]);
    expect(read({ AMQP_URL: 'amqp://u:secret@host', AMQP_CA_FILE: pem })).toEqual([
      'AMQP_URL must start with amqps:// because AMQP_CA_FILE is set',
    ]);
    expect(read({ AMQP_URL: 'amqps://host', AMQP_CERT_FILE: pem })).toEqual(['AMQP_CERT_FILE needs AMQP_KEY_FILE']);
  });

  it.each([
    ['', []],
    ['?sslmode=verify-full', []],
    ['?application_name=x&sslmode=disable', []],
    ...['allow', 'prefer', 'require', 'verify-ca', 'no-verify'].map((mode): [string, string[]] => [
      `?sslmode=${mode}`,
      ['DATABASE_URL must have sslmode=verify-full or sslmode=disable'],
    ]),
    ...['ssl', 'sslrootcert', 'sslcert', 'sslkey', 'sslnegotiation', 'uselibpqcompat'].map((name): [string, string[]] => [
      `?sslmode=verify-full&${name}=secret`,
      [
        `DATABASE_URL must not have the parameter ${name}: use sslmode=verify-full and DATABASE_CA_FILE, DATABASE_CERT_FILE, DATABASE_KEY_FILE`,
      ],
    ]),
  ])('of the database URL %j say %j', (parameters, expected) => {
    expect(problems(() => new DatabaseConfig({ DATABASE_URL: `postgres://u:secret@host/name${parameters}` }))).toEqual(expected);
  });

  it('refuses files that sslmode=disable would ignore', () => {
    const DATABASE_URL = 'postgres://host/name?sslmode=disable';
    expect(problems(() => new DatabaseConfig({ DATABASE_URL, DATABASE_CA_FILE: pem }))).toEqual([
      'DATABASE_URL must not have sslmode=disable because DATABASE_CA_FILE is set',
    ]);
  });
});
