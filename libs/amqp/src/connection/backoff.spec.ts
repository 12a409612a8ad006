import { Backoff } from './backoff';

describe(Backoff.name, () => {
  afterEach(() => jest.restoreAllMocks());

  it('begins again with the shortest wait after a success that has lasted, also when another one followed it at once', async () => {
    const timers = jest.requireActual<{ setTimeout: (ms: number) => Promise<void> }>('node:timers/promises');
    const waits = jest.spyOn(timers, 'setTimeout').mockResolvedValue();
    jest.spyOn(Math, 'random').mockReturnValue(1);
    const now = jest.spyOn(performance, 'now').mockReturnValue(0);
    const backoff = new Backoff();
    const { signal } = new AbortController();
    for (let failure = 1; failure <= 10; failure++) await backoff.wait(signal);
    backoff.succeeded();
    now.mockReturnValue(3_600_000);
    // Lost, and connected again to another node, which is lost as well.
    backoff.succeeded();
    await backoff.wait(signal);
    await backoff.wait(signal);
    backoff.succeeded();
    now.mockReturnValue(7_200_000);
    await backoff.wait(signal);
    expect(waits.mock.calls.map(([ms]) => ms)).toEqual([
      ...[100, 200, 400, 800, 1600, 3200, 5000, 5000, 5000, 5000],
      ...[100, 200],
      100,
    ]);
  });

  it('waits longer and longer for what fails soon after each success', async () => {
    const timers = jest.requireActual<{ setTimeout: (ms: number) => Promise<void> }>('node:timers/promises');
    const waits = jest.spyOn(timers, 'setTimeout').mockResolvedValue();
    jest.spyOn(Math, 'random').mockReturnValue(1);
    const now = jest.spyOn(performance, 'now').mockReturnValue(0);
    const backoff = new Backoff();
    for (let failure = 1; failure <= 4; failure++) {
      backoff.succeeded();
      now.mockReturnValue(failure * 5000);
      await backoff.wait(new AbortController().signal);
    }
    expect(waits.mock.calls.map(([ms]) => ms)).toEqual([100, 200, 400, 800]);
  });
});
