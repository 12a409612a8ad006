import type { ServiceName } from '@app/contracts/message';
import { crashedQueue, deadQueue, refusedQueue } from '@app/rabbitmq/topology/topology';

/** The dead-letter queues of a service, and the content of each. */
export const LETTERS: readonly { queueOf: (service: ServiceName) => string; summary: string }[] = [
  {
    queueOf: deadQueue,
    summary: 'Keeps commands that the service could not execute: because of a bug, or after their last attempt. It drops none.',
  },
  {
    queueOf: crashedQueue,
    summary: 'Keeps commands that crashed their consumers too often. It drops none.',
  },
  {
    queueOf: refusedQueue,
    summary:
      'Keeps commands that were refused because of their content or a missing right. When it is full, it drops the oldest.',
  },
];
