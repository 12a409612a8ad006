import { Counter, Gauge, Histogram } from 'prom-client';

/** Most notifications in a batch: half of the default prefetch, because two batches share it. */
export const MAX_BATCH = 128;

export const batchSize = new Histogram({
  name: 'notification_batch_size',
  help: 'Notifications that shared one commit.',
  buckets: [1, 2, 4, 8, 16, 32, 64, MAX_BATCH],
});

export const batchSeconds = new Histogram({
  name: 'notification_batch_seconds',
  help: 'Duration of one batch, from the first statement to the last answer.',
  buckets: [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5],
});

/** The writers of this process: one, except in tests. */
export const writers = new Set<{ readonly waiting: number }>();

export const writerWaiting = new Gauge({
  name: 'notification_writer_waiting',
  help: 'Notifications that wait for the next batch. The prefetch of commands limits them.',
  collect() {
    this.set([...writers].reduce((sum, { waiting }) => sum + waiting, 0));
  },
});

export const copyLagSeconds = new Histogram({
  name: 'copy_lag_seconds',
  help: 'Time from an event in the users service until the copy of memberships has it.',
  labelNames: ['type'],
  buckets: [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300],
});

export const retentionDeleted = new Counter({
  name: 'retention_deleted_total',
  help: 'Notifications deleted because of their age.',
});

/**
 * Measures an event that was just copied. A republished event says nothing about the lag.
 *
 * @param time RFC 3339, by the clock of the database
 */
export function observeCopied(type: string, { republished }: { republished?: boolean }, time: string | undefined): void {
  const milliseconds = Date.now() - Date.parse(time ?? '');
  if (!republished && !Number.isNaN(milliseconds)) copyLagSeconds.observe({ type }, Math.max(0, milliseconds) / 1000);
}
