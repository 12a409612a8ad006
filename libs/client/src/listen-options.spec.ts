import { readListenOptions } from './listen-options';

const LISTENING = { queue: 'billing.events', handlers: { 'user.added.v1': () => undefined } };

describe(readListenOptions.name, () => {
  it('has all the time to wait for the broker, when the caller wants it', () => {
    expect(readListenOptions(LISTENING)).toMatchObject({ prefetch: 20, tries: 8, timeoutMs: 10_000 });
    expect(readListenOptions({ ...LISTENING, timeoutMs: Infinity })).toMatchObject({ timeoutMs: Infinity });
  });

  it.each([
    [{ timeoutMs: 0 }],
    [{ timeoutMs: NaN }],
    [{ prefetch: 0 }],
    [{ tries: 21 }],
    [{ handlers: {} }],
    [{ handlers: { 'user.added.v1': undefined } }],
    [{ handlers: { ...LISTENING.handlers, 'user.removed': () => undefined } }],
    [{ queue: 'no spaces' }],
  ])('refuses %p', (wrong) => {
    expect(() => readListenOptions({ ...LISTENING, ...wrong })).toThrow(RangeError);
  });
});
