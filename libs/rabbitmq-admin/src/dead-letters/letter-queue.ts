import type { ServiceName } from '@app/contracts/message';
import { crashedQueue, deadQueue, refusedQueue, SERVICES } from '@app/rabbitmq/topology/topology';

const NAMES = { dead: deadQueue, crashed: crashedQueue, refused: refusedQueue };

/** Kind of the dead letters in a queue. It follows from the queue, not from a header. */
export type Kind = keyof typeof NAMES;
export const KINDS = Object.keys(NAMES) as Kind[];

/** A dead-letter queue. */
export interface LetterQueue {
  readonly name: string;
  readonly service: ServiceName;
  readonly kind: Kind;
}

/** All dead-letter queues, grouped by service. */
export const LETTER_QUEUES: readonly LetterQueue[] = SERVICES.flatMap((service) =>
  KINDS.map((kind) => ({ name: NAMES[kind](service), service, kind })),
);
