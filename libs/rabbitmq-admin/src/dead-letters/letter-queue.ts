import type { ServiceName } from '@app/contracts/message';
import { crashedQueue, deadQueue, refusedQueue, SERVICES } from '@app/rabbitmq/topology/topology';

const NAMES = { dead: deadQueue, crashed: crashedQueue, refused: refusedQueue };

/** Why letters are in a queue: the queue tells it, and no header does. */
export type Kind = keyof typeof NAMES;
export const KINDS = Object.keys(NAMES) as Kind[];

/** A queue of dead letters. */
export interface LetterQueue {
  readonly name: string;
  readonly service: ServiceName;
  readonly kind: Kind;
}

/** All of them, those of one service side by side. */
export const LETTER_QUEUES: readonly LetterQueue[] = SERVICES.flatMap((service) =>
  KINDS.map((kind) => ({ name: NAMES[kind](service), service, kind })),
);
