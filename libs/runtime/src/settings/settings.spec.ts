import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { warningsOf } from './misspelt-variables';
import {
  address,
  choice,
  choices,
  ConfigError,
  duration,
  flag,
  integer,
  list,
  optionalUrl,
  pemFile,
  port,
  secretText,
  Settings,
  share,
  text,
  url,
} from './settings';

class ExampleConfig extends Settings({
  port: port('PORT', 3000, 'Port.'),
  limit: integer('LIMIT', 10, { min: 1, max: 100 }, 'Limit.'),
  broker: url(['OWN_URL', 'SHARED_URL'], ['amqp:', 'amqps:'], 'Broker.'),
  level: choice('LEVEL', 'info', ['info', 'warn'] as const, 'Level.'),
  queues: choices('QUEUES', ['commands', 'queries'] as const, 'Queues.'),
  stale: duration('STALE', '10m', { max: '1h' }, 'Stale.'),
  demo: flag('DEMO', false, 'Demo.'),
  names: list('NAMES', ['one', 'two'], 'Names.'),
  file: text('FILE', 'File.'),
  host: address('HOST', '::', 'Host.'),
}) {}

describe(Settings.name, () => {
  it('reads defaults and values', () => {
    expect({ ...new ExampleConfig({ SHARED_URL: 'amqp://host' }) }).toEqual({
      port: 3000,
      limit: 10,
      broker: 'amqp://host',
      level: 'info',
      queues: ['commands', 'queries'],
      stale: 600_000,
      demo: false,
      names: ['one', 'two'],
      file: undefined,
      host: '::',
    });
    const all = {
      PORT: '0',
      LIMIT: '100',
      OWN_URL: 'amqps://own/vhost',
      SHARED_URL: 'amqp://shared',
      LEVEL: 'warn',
      QUEUES: 'queries',
      STALE: '30s',
      DEMO: 'true',
      NAMES: 'three, four',
      FILE: '/ca.pem',
      HOST: 'localhost',
    };
    expect({ ...new ExampleConfig(all) }).toEqual({
      port: 0,
      limit: 100,
      broker: 'amqps://own/vhost',
      level: 'warn',
      queues: ['queries'],
      stale: 30_000,
      demo: true,
      names: ['three', 'four'],
      file: '/ca.pem',
      host: 'localhost',
    });
  });

  it('names every problem at once, with the variable that was set and never its value', () => {
    const secret = 'hunter2';
    const env = {
      PORT: secret,
      LIMIT: '101',
      OWN_URL: `http://user:${secret}@host`,
      LEVEL: secret,
      QUEUES: secret,
      STALE: secret,
      DEMO: secret,
      NAMES: `${secret},,`,
      HOST: secret,
    };
    const read = () => new ExampleConfig(env);
    expect(read).toThrow(ConfigError);
    try {
      read();
    } catch (error) {
      const { problems, message } = error as ConfigError;
      expect(problems.map((problem) => problem.split(' ')[0])).toEqual([
        'PORT',
        'LIMIT',
        'OWN_URL',
        'LEVEL',
        'QUEUES',
        'STALE',
        'DEMO',
        'NAMES',
        'HOST',
      ]);
      expect(message).not.toContain(secret);
    }
  });

  it('names variables that are nearly settings, beside other problems and alone', () => {
    const env = { SHARED_ULR: 'amqp://u:hunter2@host', HOME: '/', POST: '1', SHARED_URL_FILE: '' };
    const problem = 'SHARED_ULR is not a setting of this process; did you mean SHARED_URL?';
    expect(() => new ExampleConfig(env)).toThrow(
      new ConfigError(['OWN_URL is required: a URL that starts with amqp:// or amqps://', problem]),
    );
    expect(warningsOf(new ExampleConfig({ ...env, OWN_URL: 'amqp://host' }))).toEqual([problem]);
    expect(warningsOf(new ExampleConfig({ SHARED_URL: 'amqp://host', OTHER_URL: 'amqp://host' }))).toEqual([]);
  });

  it.each(['[::1]', 'fe80::1%eth0', 'example.org', '127.0.0.1:80'])('refuses %s as an address to listen on', (HOST) => {
    expect(() => new ExampleConfig({ SHARED_URL: 'amqp://host', HOST })).toThrow('HOST must be an IP address');
  });

  it('reads a share, and secret text from a file', () => {
    class Shares extends Settings({ share: share('SHARE', 1, 'Share.'), secret: secretText('SECRET', 'Secret.') }) {}
    expect({ ...new Shares({}) }).toEqual({ share: 1, secret: undefined });
    for (const SHARE of ['0', '0.01', '.5', '1', '1.0']) expect(new Shares({ SHARE }).share).toBe(Number(SHARE));
    for (const SHARE of ['-1', '1.1', '1e-2', '50%', 'NaN'])
      expect(() => new Shares({ SHARE })).toThrow('SHARE must be a number from 0 to 1');
    expect(Shares.settings.secret.secret).toBe(true);
  });

  it.each(['10', '1d', '2h'])('refuses %s as a duration', (STALE) => {
    expect(() => new ExampleConfig({ SHARED_URL: 'amqp://host', STALE })).toThrow(
      'STALE must be a duration with its unit, such as 30s, at most 1h',
    );
  });

  it('treats an empty variable as unset', () => {
    expect(new ExampleConfig({ OWN_URL: '', SHARED_URL: 'amqp://shared', PORT: '' })).toMatchObject({
      port: 3000,
      broker: 'amqp://shared',
    });
    expect(() => new ExampleConfig({})).toThrow('OWN_URL is required');
  });

  it('takes a variable without one line break at its end', () => {
    const env = { SHARED_URL: 'amqp://shared/vhost\n', PORT: '3001\r\n', LEVEL: '\n' };
    expect(new ExampleConfig(env)).toMatchObject({
      broker: 'amqp://shared/vhost',
      port: 3001,
      level: new ExampleConfig({ SHARED_URL: 'amqp://h' }).level,
    });
    expect(new ExampleConfig({ OWN_URL: '\n', SHARED_URL: 'amqp://shared' }).broker).toBe('amqp://shared');
  });
});

describe('files', () => {
  class SecretConfig extends Settings({
    broker: url(['OWN_URL', 'SHARED_URL'], ['amqp:'], 'Broker.'),
    optional: optionalUrl('OTHER_URL', ['http:'], 'Other.'),
    cert: pemFile('CERT_FILE', 'Certificate.', 'KEY_FILE'),
    key: pemFile('KEY_FILE', 'Key.', 'CERT_FILE'),
  }) {}

  let directory: string;
  beforeAll(() => void (directory = mkdtempSync(join(tmpdir(), 'settings-'))));
  afterAll(() => rmSync(directory, { recursive: true }));
  const file = (name: string, content: string) => {
    const path = join(directory, name);
    writeFileSync(path, content);
    return path;
  };
  const problems = (env: NodeJS.ProcessEnv): string[] => {
    try {
      new SecretConfig(env);
      return [];
    } catch (error) {
      return (error as ConfigError).problems;
    }
  };

  it.each([
    ['amqp://own', 'amqp://own'],
    ['amqp://own\n', 'amqp://own'],
    ['amqp://own\r\n', 'amqp://own'],
    ['amqp://own\n\n', 'amqp://own\n'],
  ])('takes a secret from the file %j without one line break', (content, broker) => {
    const OWN_URL_FILE = file('url', content);
    expect(new SecretConfig({ OWN_URL_FILE, SHARED_URL: 'amqp://shared' })).toMatchObject({ broker });
    expect(new SecretConfig({ SHARED_URL_FILE: OWN_URL_FILE, OWN_URL: 'amqp://first' }).broker).toBe('amqp://first');
    expect(new SecretConfig({ OWN_URL: 'amqp://own', OWN_URL_FILE: '', OTHER_URL_FILE: file('http', 'http://x') }).optional).toBe(
      'http://x',
    );
  });

  it('names the variable and the path of every bad file, and never a content', () => {
    const secret = 'hunter2';
    const wrong = file('wrong', `http://user:${secret}@host`);
    const cases: [NodeJS.ProcessEnv, string][] = [
      [{ OWN_URL_FILE: wrong }, 'OWN_URL in the file of OWN_URL_FILE must be a URL that starts with amqp://'],
      [{ OWN_URL_FILE: wrong, OWN_URL: 'amqp://own' }, 'OWN_URL and OWN_URL_FILE are both set: only one of them may be'],
      [{ OWN_URL_FILE: '/none' }, 'OWN_URL_FILE names /none, which cannot be read (ENOENT)'],
      [{ OWN_URL_FILE: directory }, `OWN_URL_FILE names ${directory}, which is not a file`],
      [{ OWN_URL_FILE: '/dev/zero' }, 'OWN_URL_FILE names /dev/zero, which is not a file'],
      [{ OWN_URL_FILE: file('empty', '\n') }, `OWN_URL_FILE names ${directory}/empty, which is empty`],
      [
        { SHARED_URL_FILE: file('big', `${secret}${' '.repeat(65536)}`) },
        `SHARED_URL_FILE names ${directory}/big, which has more than 65536 bytes`,
      ],
      [{ OWN_URL_FILE: `amqp://user:${secret}@host` }, 'OWN_URL_FILE must be the path of a file, not the value itself'],
    ];
    for (const [env, problem] of cases) expect(problems(env)).toEqual([problem]);
    expect(problems({ OWN_URL_FILE: '/none', OTHER_URL_FILE: '/no' })).toHaveLength(2);
  });

  it('wants certificate and key together, and both readable', () => {
    const CERT_FILE = file('cert', 'pem');
    const env = { OWN_URL: 'amqp://own' };
    expect(new SecretConfig({ ...env, CERT_FILE, KEY_FILE: CERT_FILE })).toMatchObject({ cert: CERT_FILE, key: CERT_FILE });
    expect(problems({ ...env, CERT_FILE })).toEqual(['CERT_FILE needs KEY_FILE']);
    expect(problems({ ...env, KEY_FILE: CERT_FILE })).toEqual(['KEY_FILE needs CERT_FILE']);
    expect(problems({ ...env, CERT_FILE, KEY_FILE: '/none' })).toEqual(['KEY_FILE names /none, which cannot be read (ENOENT)']);
  });
});
