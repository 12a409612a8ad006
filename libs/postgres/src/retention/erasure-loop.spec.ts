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

  it('goes on until there is no erasure, also after a failure', async () => {
    loop.wake();
    await steps.ends(1, 'done');
    await steps.ends(2, new Error('the connection was lost'));
    await steps.ends(3, 'waiting');
    await steps.ends(4, 'idle');
    await loop.stop();
    expect(steps.begun).toBe(4);
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
