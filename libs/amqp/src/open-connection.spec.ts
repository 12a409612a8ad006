import { parseBrokerUrl } from './open-connection';

describe('parseBrokerUrl', () => {
  it('reads every part', () => {
    expect(parseBrokerUrl('amqps://us%40er:p%2Fw@broker.example:5673/my%2Fhost')).toEqual({
      protocol: 'amqps',
      hostname: 'broker.example',
      port: 5673,
      username: 'us@er',
      password: 'p/w',
      vhost: 'my%2Fhost',
      heartbeat: 10,
    });
  });

  it('has the defaults of the protocol', () => {
    expect(parseBrokerUrl('amqp://[::1]')).toEqual({
      protocol: 'amqp',
      hostname: '::1',
      username: 'guest',
      password: 'guest',
      vhost: '%2F',
      heartbeat: 10,
    });
  });

  it.each(['', 'broker', 'http://user:secret@host', 'amqp://', 'amqp:user:secret@host'])(
    'refuses %p without quoting it',
    (url) => {
      expect(() => parseBrokerUrl(url)).toThrow(/^must be an amqp:\/\/ or amqps:\/\/ URL$/);
    },
  );
});
