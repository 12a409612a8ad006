import { get } from 'node:http';
import type { Cluster } from './cluster';

/** A shorter wait between two looks goes unseen. */
const EVERY_MS = 50;
/** Looked at, at most: longer than any answer is waited for. */
const LATEST = 4000;

/**
 * How long the machine itself lets everybody wait: the time of a call that depends on nothing but the gateway's process. On a machine that
 * does other things as well a bound in milliseconds would judge those.
 */
export class Noise {
  private readonly samples: { from: number; to?: number; failed?: boolean }[] = [];
  private dueAt = Infinity;
  private readonly timer = setInterval(() => this.sample(), EVERY_MS).unref();

  constructor(private readonly cluster: Cluster) {}

  /** The longest wait from then until now. */
  since(from: number): number {
    const now = performance.now();
    const waits = this.samples
      .slice(-LATEST)
      .filter((sample) => !sample.failed && (sample.to ?? now) >= from)
      .map((sample) => (sample.to ?? now) - sample.from);
    return Math.max(0, ...waits);
  }

  stop(): void {
    clearInterval(this.timer);
  }

  private sample(): void {
    // A look that comes late is the machine's fault, too, or that of the test itself.
    const sample: { from: number; to?: number; failed?: boolean } = { from: Math.min(performance.now(), this.dueAt) };
    this.dueAt = performance.now() + EVERY_MS;
    this.samples.push(sample);
    const call = get(`${this.cluster.gateway.url}/health/live`, { agent: false }, (response) => {
      response.on('end', () => (sample.to = performance.now())).resume();
    });
    call.on('error', () => (sample.failed = true));
  }
}
