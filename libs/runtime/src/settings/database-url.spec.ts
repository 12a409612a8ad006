import { databaseServers, databaseUrl, optionalDatabaseUrl } from './database-url';
import { type ConfigError, Settings } from './settings';

const SECRET = 'p,a@ss%2Fword';

describe(databaseServers, () => {
  it.each([
    ['postgres://u:p@one/db', ['postgres://u:p@one/db']],
    ['postgresql://one:5433', ['postgresql://one:5433']],
    [
      `postgres://u:${SECRET}@one:5432,two,[::1]:5433/db?sslmode=verify-full`,
      ['one:5432', 'two', '[::1]:5433'].map((server) => `postgres://u:${SECRET}@${server}/db?sslmode=verify-full`),
    ],
    [
      'postgres://one,two?target_session_attrs=read-write',
      ['one', 'two'].map((s) => `postgres://${s}?target_session_attrs=read-write`),
    ],
  ])('reads %s', (url, servers) => {
    expect(databaseServers(url)).toEqual(servers);
  });

  it.each([
    ['no address', 'postgres URL'],
    ['http://one/db', 'starts with postgres://'],
    ['postgres:///db', 'starts with postgres://'],
    ['postgres://u:p@one,/db', 'separated by commas'],
    ['postgres://u:p@,one/db', 'separated by commas'],
    ['postgres://u:p@one, two/db', 'separated by commas'],
    ['postgres://u:p@one:port,two/db', 'separated by commas'],
    ['postgres://u:p@one:99999,two/db', 'separated by commas'],
    ['postgres://u:p@::1,two/db', 'separated by commas'],
    ['postgres://u:p@one,ONE:5432/db', 'each server once'],
    ['postgres://u:p@1,2,3,4,5,6,7,8,9/db', 'at most 8 servers'],
    ['postgres://one,two/db?target_session_attrs=standby', 'target_session_attrs'],
    ['postgres://one,two/db?host=three', 'host and port'],
    [`postgres://u:${SECRET}@one/d%b`, 'written as %25'],
    ...['postgres://u:sec/ret@one/db', 'postgresql://u:sec?ret@one', 'postgres://u:sec#ret@one/db'].map((url) => [url, 'as %2F']),
  ])('refuses %s', (url, problem) => {
    expect(() => databaseServers(url)).toThrow(problem === 'postgres URL' ? /must be a URL/ : problem);
  });
});

describe(databaseUrl, () => {
  class Config extends Settings({
    own: databaseUrl(['OWN_DATABASE_URL', 'DATABASE_URL'], ''),
    other: optionalDatabaseUrl('OTHER_DATABASE_URL', ''),
  }) {}

  it('reads both, and reports each problem without the value', () => {
    expect(new Config({ DATABASE_URL: 'postgres://one,two/db' })).toEqual({ own: 'postgres://one,two/db', other: undefined });
    const problems = (env: NodeJS.ProcessEnv): string[] => {
      try {
        return [new Config(env).own];
      } catch (error) {
        return (error as ConfigError).problems;
      }
    };
    expect(problems({})).toEqual(['OWN_DATABASE_URL is required: a URL that starts with postgres:// or postgresql://']);
    const bad = problems({ DATABASE_URL: `postgres://u:${SECRET}@one,/db`, OTHER_DATABASE_URL: `amqp://u:${SECRET}@one` });
    expect(bad).toEqual([
      expect.stringMatching(/^DATABASE_URL must name each server/),
      expect.stringMatching(/^OTHER_DATABASE_URL must be a URL/),
    ]);
    expect(bad.join()).not.toContain('ss%2F');
  });
});
