import { createHash } from 'node:crypto';
import { readCredentials } from './credentials';

const headers = (...pairs: [string, string][]) => pairs.flat();
const key = (value: string): [string, string] => ['X-Svc-Api-Key', value];
const token = (value: string): [string, string] => ['x-svc-auth-token', value];

describe('readCredentials', () => {
  it('reads both headers in any case, and keeps only the hash of the token', () => {
    const credentials = readCredentials(headers(['host', 'x'], key('demo-key'), token('demo-token')));
    expect(credentials).toEqual({
      apiKey: 'demo-key',
      tokenHash: createHash('sha256').update('demo-token').digest('hex'),
      cacheKey: `${createHash('sha256').update('demo-token').digest('hex')} demo-key`,
    });
    expect(JSON.stringify(credentials)).not.toContain('demo-token');
  });

  it('has another cache key for another key and for another token', () => {
    const cacheKeys = [
      [key('a'), token('b')],
      [key('a'), token('c')],
      [key('b'), token('b')],
    ].map((pair) => readCredentials(headers(...pair))?.cacheKey);
    expect(new Set(cacheKeys).size).toBe(3);
  });

  it('decodes a non-ASCII key as UTF-8', () => {
    const asNodeReadsIt = Buffer.from('clé').toString('latin1');
    expect(readCredentials(headers(key(asNodeReadsIt), token('t')))?.apiKey).toBe('clé');
  });

  it.each([
    ['no key', [token('t')]],
    ['no token', [key('k')]],
    ['an empty key', [key(''), token('t')]],
    ['an empty token', [key('k'), token('')]],
    ['a blank key', [key(Buffer.from('\u00a0').toString('latin1')), token('t')]],
    ['a key of 257 bytes', [key('k'.repeat(257)), token('t')]],
    ['a key that is not UTF-8', [key('\u00ff'), token('t')]],
    ['a token of 513 characters', [key('k'), token('t'.repeat(513))]],
    ['two keys', [key('k'), key('k'), token('t')]],
    ['two tokens', [key('k'), token('t'), token('t')]],
  ])('has none with %s', (_, pairs) => {
    expect(readCredentials(headers(...pairs))).toBeUndefined();
  });

  it('accepts the longest key and token', () => {
    expect(readCredentials(headers(key('k'.repeat(256)), token('t'.repeat(512))))).toBeDefined();
  });
});
