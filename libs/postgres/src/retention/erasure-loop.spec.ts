import { Logger } from '@nestjs/common';
import { eventually } from '@app/testing/eventually';
import { ErasureLoop, type StepOutcome } from './erasure-loop';

/** Steps whose ends the test decides. */
class Steps {
  begun = 0;
  private end!: { resolve: (outcome: StepOutcome) => void; reject: (error: Error) => void };

  step(): Promise<StepOutcome> {
    this.begun++;
    return new Promise((resolve, reject) => (this.end = { resolve, reject }));
  }

  oldestSeconds = async () => 0;

  async ends(number: number, outcome: StepOutcome | Error): Promise<void> {
    await eventually(() => this.begun === number);
    if (outcome instanceof Error) this.end.reject(outcome);
    else this.end.resolve(outcome);
  }
}

describe('the loop of erasures', () => {
  let steps: Steps;
  let loop: ErasureLoop;

  beforeEach(() => {
    steps = new Steps();
    loop = new ErasureLoop(steps);
  });
  afterEach(() => jest.restoreAllMocks());

  it('goes on until there is no erasure, also after a failure', async () => {
    loop.wake();
    await steps.ends(1, 'done');
    await steps.ends(2, new Error('the connection was lost'));
    await steps.ends(3, 'waiting');
    await steps.ends(4, 'idle');
    await loop.stop();
    expect(steps.begun).toBe(4);
  });

  it('rests as long as a step has taken, and half a second while it waits for other processes', async () => {
    const timers = jest.requireActual<{ setTimeout: (ms: number) => Promise<void> }>('node:timers/promises');
    const rests = jest.spyOn(timers, 'setTimeout').mockResolvedValue();
    const clock = jest.spyOn(performance, 'now').mockReturnValue(0);
    loop.wake();
    await eventually(() => steps.begun === 1);
    clock.mockReturnValue(70);
    await steps.ends(1, 'done');
    await steps.ends(2, 'waiting');
    await steps.ends(3, 'idle');
    await loop.stop();
    expect(rests.mock.calls.map(([ms]) => ms)).toEqual([70, 500]);
  });

  it('says once that it cannot go on, and that it does again', async () => {
    const timers = jest.requireActual<{ setTimeout: (ms: number) => Promise<void> }>('node:timers/promises');
    jest.spyOn(timers, 'setTimeout').mockResolvedValue();
    const lines: unknown[] = [];
    for (const level of ['log', 'warn'] as const)
      jest.spyOn(Logger.prototype, level).mockImplementation((...line: unknown[]) => void lines.push(...line));
    loop.wake();
    for (const failure of [1, 2, 3]) await steps.ends(failure, new Error('canary'));
    await steps.ends(4, 'idle');
    await loop.stop();
    expect(lines).toEqual([{ msg: 'an erasure cannot go on for now', reason: 'Error' }, { msg: 'the erasure goes on' }]);
  });

  it('looks for an erasure that came while it found none', async () => {
    loop.wake();
    await eventually(() => steps.begun === 1);
    loop.wake();
    await steps.ends(1, 'idle');
    await steps.ends(2, 'idle');
    await loop.stop();
  });

  it('ends after the running step', async () => {
    loop.wake();
    await eventually(() => steps.begun === 1);
    const stopped = loop.stop();
    await steps.ends(1, 'done');
    await stopped;
    expect(steps.begun).toBe(1);
  });
});
