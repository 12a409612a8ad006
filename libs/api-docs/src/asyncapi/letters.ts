import type { ServiceName } from '@app/contracts/message';
import { crashedQueue, deadQueue, refusedQueue } from '@app/rabbitmq/topology/topology';

/** The queues of dead letters of a service, and what each keeps. */
export const LETTERS: readonly { queueOf: (service: ServiceName) => string; summary: string }[] = [
  {
    queueOf: deadQueue,
    summary: 'Keeps commands that the service could not carry out: by a bug, or because their tries were used up. It drops none.',
  },
  {
    queueOf: crashedQueue,
    summary: 'Keeps commands that ended their consumers, until the broker gave them up. It drops none.',
  },
  {
    queueOf: refusedQueue,
    summary: 'Keeps commands that were refused for what their publisher had sent. Full, it drops its oldest.',
  },
];
