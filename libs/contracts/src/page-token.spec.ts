import * as fc from 'fast-check';
import { identifierProblem } from './fields';
import { decodePageToken, decodeUserToken, encodePageToken, encodeUserToken } from './page-token';

describe('page token', () => {
  it('carries any position', () => {
    const identifier = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 256 }).filter((id) => !identifierProblem(id));
    fc.assert(
      fc.property(fc.nat(4_102_444_800_000), identifier, (timestamp, notificationId) => {
        expect(decodePageToken(encodePageToken({ timestamp, notificationId }))).toEqual({ timestamp, notificationId });
        expect(decodeUserToken(encodeUserToken(notificationId))).toBe(notificationId);
      }),
    );
  });

  it('is rejected when this system has not made it', () => {
    const json = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');
    for (const token of [
      '',
      '!',
      'abc',
      json({}),
      json([1]),
      json(['1', 'a']),
      json([1.5, 'a']),
      json([-1, 'a']),
      json([1, 2]),
      json([1, 'a\0']),
      json(['a', 'b']),
      json([1, 'a', 2]),
      json([1, '']),
      `${encodePageToken({ timestamp: 1, notificationId: 'a' })}A`,
    ]) {
      expect(decodePageToken(token)).toBeUndefined();
      expect(decodeUserToken(token)).toBeUndefined();
    }
    fc.assert(fc.property(fc.string(), (token) => expect(() => decodePageToken(token)).not.toThrow()));
  });
});
