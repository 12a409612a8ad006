import { setTimeout as sleep } from 'node:timers/promises';
import { Logger } from '@nestjs/common';
import { waitAfter } from '@app/runtime/wait-after';
import { reasonOf } from '../errors';
import { erasureFailures, erasureOldestSeconds } from '../metrics';

/** How often it looks for what another process has left. */
const LOOK_MS = 10_000;
/** Pause while an erasure waits for other processes, in milliseconds. */
const WAIT_MS = 500;

/** `done`: a step was done, and there may be more. `waiting`: nothing can be done now, but soon. `idle`: there is no erasure. */
export type StepOutcome = 'done' | 'waiting' | 'idle';

/** The erasures of a service. Each step is one transaction that also moves the position, so any process goes on after the end of another. */
export interface ErasureSteps {
  step(): Promise<StepOutcome>;
  /** Age of the oldest erasure that is not complete, in seconds; 0 without one. */
  oldestSeconds(): Promise<number>;
}

/** Erases step by step, in any number of processes at once. Uses at most half of the time of one connection. */
export class ErasureLoop {
  private readonly logger = new Logger('Erasure');
  private readonly closing = new AbortController();
  private timer?: NodeJS.Timeout;
  private running?: Promise<void>;
  private woken = false;

  constructor(private readonly steps: ErasureSteps) {}

  /** Begins with what is there already. */
  start(): void {
    this.timer = setInterval(() => void this.look(), LOOK_MS).unref();
    void this.look();
  }

  /** To be called when there may be a new erasure. */
  wake(): void {
    this.woken = true;
    if (!this.closing.signal.aborted) this.running ??= this.run();
  }

  /** Resolves after the running step. */
  async stop(): Promise<void> {
    clearInterval(this.timer);
    this.closing.abort();
    await this.running;
  }

  /** A failure shows at the next step. */
  private async look(): Promise<void> {
    this.wake();
    await this.steps.oldestSeconds().then(
      (seconds) => erasureOldestSeconds.set(seconds),
      () => undefined,
    );
  }

  private async run(): Promise<void> {
    const { signal } = this.closing;
    const pause = (ms: number) => sleep(ms, undefined, { signal }).catch(() => undefined);
    let failed = 0;
    while (this.woken && !signal.aborted) {
      const from = performance.now();
      this.woken = false; // before the step: an erasure that comes while it runs is looked for in the next one
      try {
        const outcome = await this.steps.step();
        if (failed > 0) this.logger.log({ msg: 'the erasure goes on' });
        failed = 0;
        if (outcome === 'idle') continue;
        this.woken = true;
        await pause(outcome === 'done' ? performance.now() - from : WAIT_MS);
      } catch (error) {
        this.woken = true;
        erasureFailures.inc();
        // The message of the driver may have values of the statement.
        if (failed++ === 0) this.logger.warn({ msg: 'an erasure cannot go on for now', reason: reasonOf(error) });
        await pause(waitAfter(failed));
      }
    }
    this.running = undefined;
  }
}
