import { get } from 'node:http';
import type { Gateway } from './cluster';

/** Interval of the samples. A shorter delay between two samples is not seen. */
const EVERY_MS = 50;
/** Most samples that are used: they cover more than the longest wait for an answer. */
const LATEST = 4000;

/**
 * Measures the delay by the machine itself: the time of a call that depends only on the gateway process. Without it, limits in milliseconds would
 * fail on a machine that is busy with other work.
 */
export class Noise {
  private readonly samples: { from: number; to?: number; failed?: boolean }[] = [];
  private dueAt = Infinity;
  private readonly timer = setInterval(() => this.sample(), EVERY_MS).unref();

  constructor(private readonly cluster: { gateway: Pick<Gateway, 'url'> }) {}

  /** The longest delay between two times. */
  since(from: number, until = performance.now()): number {
    const waits = this.samples
      .slice(-LATEST)
      .filter((sample) => !sample.failed && (sample.to ?? until) >= from && sample.from <= until)
      .map((sample) => (sample.to ?? until) - sample.from);
    return Math.max(0, ...waits);
  }

  stop(): void {
    clearInterval(this.timer);
  }

  private sample(): void {
    // A late sample is a delay by the machine too, or by the test itself.
    const sample: { from: number; to?: number; failed?: boolean } = { from: Math.min(performance.now(), this.dueAt) };
    this.dueAt = performance.now() + EVERY_MS;
    this.samples.push(sample);
    const call = get(`${this.cluster.gateway.url}/health/live`, { agent: false }, (response) => {
      response.on('end', () => (sample.to = performance.now())).resume();
    });
    call.on('error', () => (sample.failed = true));
  }
}
