import { eventually } from '@app/testing/eventually';
import type { ServiceProcess } from '@app/testing/service-process';

/**
 * Starts processes again when they have ended, as whatever runs them does.
 *
 * @param onEnd told each time that one has ended
 * @returns what ends it, once all of them are ready
 */
export function supervise(processes: readonly ServiceProcess[], onEnd?: () => void): () => Promise<void> {
  let starting: Promise<unknown> = Promise.resolve();
  const timer = setInterval(() => {
    // One that dies again before it is ready is started again.
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
      // The last one may have ended a moment ago.
      await eventually(async () => (await Promise.all(processes.map(isReady))).every(Boolean), 30_000, 200);
    } finally {
      clearInterval(timer);
      await starting;
    }
  };
}
