import { requestIdOf } from './request-id';

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
const idFor = (value?: string) => requestIdOf({ headers: { 'x-request-id': value } });

describe('requestIdOf', () => {
  it.each(['a', 'trace 1/~!', 'x'.repeat(128)])('keeps %j', (value) => {
    expect(idFor(value)).toBe(value);
  });

  it.each([undefined, '', 'x'.repeat(129), 'é', 'a\tb', 'a\u007f'])('replaces %j', (value) => {
    expect(idFor(value)).toMatch(UUID);
  });

  it('makes a new one each time', () => {
    expect(idFor()).not.toBe(idFor());
  });
});
