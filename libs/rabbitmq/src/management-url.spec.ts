import { parseManagementUrl } from './management-url';

describe('parseManagementUrl', () => {
  it('has a URL for each node, with the same credentials and path', () => {
    const urls = parseManagementUrl('http://user:p%40@one:15672,[::1]:15673/rabbit');
    expect(urls.map(({ href }) => href)).toEqual(['http://user:p%40@one:15672/rabbit', 'http://user:p%40@[::1]:15673/rabbit']);
    expect(parseManagementUrl('https://one').map(({ href }) => href)).toEqual(['https://one/']);
  });

  it.each([
    ['amqp://user:secret@host', 'must be a URL that starts with http:// or https://'],
    ['http://user:secret@one,:15672', 'has no valid host at place 2 of its list'],
    ['http://user:secret@one:secret,two', 'has no valid host at place 1 of its list'],
    ['http://user:secret@one,two,one', 'must not name a host twice'],
    ['http://user:secret@one,user:secret@two', 'must have user and password once'],
  ])('refuses %p without quoting it', (url, problem) => {
    expect(() => parseManagementUrl(url)).toThrow(new RegExp(`^${problem}`));
    expect(() => parseManagementUrl(url)).not.toThrow(/secret/);
  });
});
