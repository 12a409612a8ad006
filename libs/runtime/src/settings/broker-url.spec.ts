import { addressText, brokerUrlAs, parseBrokerUrl } from './broker-url';

describe('parseBrokerUrl', () => {
  it('reads every part', () => {
    expect(parseBrokerUrl('amqps://us%40er:p%2Fw@broker.example:5673/my%2Fhost')).toEqual({
      protocol: 'amqps',
      addresses: [{ host: 'broker.example', port: 5673 }],
      username: 'us@er',
      password: 'p/w',
      vhost: 'my%2Fhost',
    });
  });

  it('has the defaults of the protocol', () => {
    expect(parseBrokerUrl('amqp://[::1]')).toEqual({
      protocol: 'amqp',
      addresses: [{ host: '::1', port: 5672 }],
      username: 'guest',
      password: 'guest',
      vhost: '%2F',
    });
  });

  it('reads a list of nodes, which share everything else', () => {
    const { addresses, ...shared } = parseBrokerUrl('amqps://user:a:b@one,two:5673,[2001:db8::1],[::2]:5674/name');
    expect(addresses.map(addressText)).toEqual(['one:5671', 'two:5673', '[2001:db8::1]:5671', '[::2]:5674']);
    expect(shared).toEqual({ protocol: 'amqps', username: 'user', password: 'a:b', vhost: 'name' });
  });

  it('takes an unescaped @ in the password of a single host, as URLs do', () => {
    expect(parseBrokerUrl('amqp://user:p@ss@host')).toMatchObject({ password: 'p@ss', addresses: [{ host: 'host' }] });
  });

  it.each(['amqp://one:5672,two/v@h', 'amqp://admin:p%40:@one:5672,two/v@h', 'amqp://admin:p@ss@one:5672,two/v@h'])(
    'gives %p another account',
    (url) => expect(brokerUrlAs(url, 'a/b', '$1@')).toBe('amqp://a%2Fb:%241%40@one:5672,two/v@h'),
  );

  const scheme = 'must be a URL that starts with amqp:// or amqps://';
  const host = (place: number) =>
    `has no valid host at place ${place} of its list: it must be host or host:port, with brackets around IPv6`;

  it.each([
    ['', scheme],
    ['broker', scheme],
    ['http://user:secret@host', scheme],
    ['amqp://', scheme],
    ['amqp://user:secret@', scheme],
    ['amqp:user:secret@host', scheme],
    ['amqp://user:secret@host1,', host(2)],
    ['amqp://user:secret@host1,,host3', host(2)],
    ['amqp://user:secret@,host2', host(1)],
    ['amqp://user:secret@host1, host2', host(2)],
    ['amqp://user:secret@host1:secret,host2', host(1)],
    ['amqp://user:secret@host1:,host2', host(1)],
    ['amqp://user:secret@host1:0', host(1)],
    ['amqp://user:secret@host1:65536', host(1)],
    ['amqp://user:secret@host1;host2', host(1)],
    ['amqp://user:secret@::1,::2', host(1)],
    [
      'amqp://user:secret@host1,user:secret@host2',
      'must have user and password once, in front of the first host; a @ in the password is written as %40',
    ],
    ['amqp://user:secret@host1,HOST1', 'must not name a host twice'],
    [`amqp://user:secret@${Array.from({ length: 17 }, (_, at) => `host${at}`).join()}`, 'must not have more than 16 hosts'],
    ...['amqp://user:secret%@host', 'amqp://user:secret@host/100%'].map((url) => [
      url,
      'must have a % in user, password or virtual host written as %25',
    ]),
    ...['amqp://user:sec/ret@host', 'amqp://user:5672?ret@host', 'amqp://user:sec#ret@host/vhost', 'amqp://host/vhost@site'].map(
      (url) => [url, 'must have a /, ? or # in user or password written as %2F, %3F or %23, and a @ behind the host as %40'],
    ),
  ])('refuses %p without quoting it', (url, problem) => {
    expect(() => parseBrokerUrl(url)).toThrow(new Error(problem));
  });
});
