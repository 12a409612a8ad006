import { eventually } from '@app/testing/eventually';
import type { ServiceProcess } from '@app/testing/system/service-process';

/**
 * Restarts processes when they end, like the platform that runs them.
 *
 * @param onEnd called each time a process has ended
 * @returns a function that stops it; resolves once all processes are ready
 */
export function supervise(processes: readonly ServiceProcess[], onEnd?: () => void): () => Promise<void> {
  let starting: Promise<unknown> = Promise.resolve();
  const timer = setInterval(() => {
    // A process that ends again before it is ready is restarted too.
    for (const process of processes) {
      if (process.exitCode === undefined) continue;
      onEnd?.();
      starting = process.start().catch(() => undefined);
    }
  }, 20);
  const isReady = (process: ServiceProcess) =>
    process.health('ready').then(
      ({ status }) => status === 200,
      () => false,
    );
  return async () => {
    try {
      // A process may have ended just before.
      await eventually(async () => (await Promise.all(processes.map(isReady))).every(Boolean), 30_000, 200);
    } finally {
      clearInterval(timer);
      await starting;
    }
  };
}
