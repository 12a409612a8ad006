import { Counter } from 'prom-client';

export const published = new Counter({ name: 'outbox_published_total', help: 'Events that the broker has confirmed.' });
export const failures = new Counter({
  name: 'outbox_failures_total',
  help: 'Batches of events that could not be published and stay in the outbox.',
});
