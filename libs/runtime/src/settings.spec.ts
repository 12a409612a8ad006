import { address, choice, choices, ConfigError, duration, flag, integer, list, port, Settings, text, url } from './settings';

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

  it.each(['[::1]', 'fe80::1%eth0', 'example.org', '127.0.0.1:80'])('refuses %s as an address to listen on', (HOST) => {
    expect(() => new ExampleConfig({ SHARED_URL: 'amqp://host', HOST })).toThrow('HOST must be an IP address');
  });

  it('treats an empty variable as unset', () => {
    expect(new ExampleConfig({ OWN_URL: '', SHARED_URL: 'amqp://shared', PORT: '' })).toMatchObject({
      port: 3000,
      broker: 'amqp://shared',
    });
    expect(() => new ExampleConfig({})).toThrow('OWN_URL is required');
  });
});
