import { LONGEST_MS, within } from './within';

describe(within.name, () => {
  afterEach(() => jest.restoreAllMocks());

  it('says whether a promise has settled in time, however it has settled', async () => {
    expect(await within(60_000, Promise.resolve())).toBe(true);
    expect(await within(60_000, Promise.reject(new Error('lost')))).toBe(true);
    expect(await within(1, new Promise(() => undefined))).toBe(false);
  });

  it('gives a promise that has settled its turn when no time is left', async () => {
    // Node 24 writes a warning to stderr for a negative timeout, where a service writes its log.
    const timers = jest.spyOn(globalThis, 'setTimeout');
    expect(await within(-5, Promise.resolve())).toBe(true);
    expect(await within(-5, new Promise(() => undefined))).toBe(false);
    expect(timers.mock.calls.map(([, ms]) => ms)).toEqual([0, 0]);
  });

  it('has time without end for a caller that gives Infinity', async () => {
    // Node takes a time that is too long for 1 ms.
    const timers = jest.spyOn(globalThis, 'setTimeout');
    expect(await within(Infinity, Promise.resolve())).toBe(true);
    expect(timers.mock.calls.map(([, ms]) => ms)).toEqual([LONGEST_MS]);
  });
});
