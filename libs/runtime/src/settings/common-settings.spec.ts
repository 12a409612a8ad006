import { databaseSettings, prefetchBelowPool } from './common-settings';
import { Settings } from './settings';

describe(prefetchBelowPool, () => {
  class Config extends Settings({ ...databaseSettings('own'), queries: prefetchBelowPool('QUERIES', 7, 3, '') }) {}
  const queries = (env: NodeJS.ProcessEnv) => new Config({ DATABASE_URL: 'postgres://host', ...env }).queries;

  it.each([
    ['10', 7],
    ['200', 7],
    ['5', 2],
    ['3', 1],
    ['1', 1],
    ['', 7],
  ])('leaves three connections of a pool of %j, and is at most its default', (DATABASE_POOL_SIZE, expected) => {
    expect(queries({ DATABASE_POOL_SIZE })).toBe(expected);
  });

  it('is what was set, whatever the pool', () => {
    expect(queries({ DATABASE_POOL_SIZE: '5', QUERIES: '7' })).toBe(7);
    expect(() => queries({ DATABASE_POOL_SIZE: 'five' })).toThrow(
      /^The configuration is invalid:\n {2}- DATABASE_POOL_SIZE [^\n]*$/,
    );
  });
});
