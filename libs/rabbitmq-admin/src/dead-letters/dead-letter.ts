import { createHash } from 'node:crypto';
import type { ConsumeMessage } from 'amqplib';
import { ERROR_STATUSES } from '@app/contracts/error';
import { HEADER } from '@app/amqp/messages/headers';
import type { LetterQueue } from './letter-queue';
import { text } from './printable';
import { OTHER_STATUSES, testimonyOf, type Testimony } from './testimony';

/** Every status of a dead letter: that of its error, or one that follows from its queue. */
export const LETTER_STATUSES: readonly string[] = [...ERROR_STATUSES, ...OTHER_STATUSES];

/** Summary of a dead letter without its body. Its strings are safe to print. */
export interface LetterSummary extends Omit<Testimony, 'correlationId' | 'exchange'> {
  queue: string;
  /** Place in the queue, 1 at its head. */
  position: number;
  /** The message_id, or a hash of the unchanging parts if there is none. */
  id: string;
  /** Id of the request, as in the logs. A publisher may write any text. */
  requestId?: string;
  /** Tenant that its publisher named. */
  apiKey?: string;
  /** Name that the publisher gives itself. */
  app?: string;
  /** Size of the published body in bytes. */
  size: number;
}

export interface DeadLetter extends LetterSummary, Testimony {
  message: ConsumeMessage;
  from: LetterQueue;
}

/**
 * Reads a dead letter. Nothing in it is trusted.
 *
 * @param services broker accounts of the services
 */
export function readDeadLetter(
  message: ConsumeMessage,
  from: LetterQueue,
  position: number,
  services: ReadonlySet<string>,
): DeadLetter {
  const { properties, content } = message;
  const testimony = testimonyOf(message, from, services);
  const apiKey = text(properties.headers?.[HEADER.apiKey]);
  const { operation, firstFailedAt, stubOf } = testimony;
  return {
    queue: from.name,
    position,
    id: text(properties.messageId) ?? contentId(content, operation, apiKey, firstFailedAt, stubOf),
    requestId: text(properties.headers?.[HEADER.requestId]),
    apiKey,
    app: text(properties.appId),
    size: stubOf?.bytes ?? content.length,
    ...testimony,
    message,
    from,
  };
}

/** What a cut body still has, for people; undefined when it is whole, as that of a message whose headers cannot be read. */
export const keptPart = ({ message, size, stubOf }: DeadLetter): string | undefined =>
  stubOf && message.content.length !== size ? `the first ${message.content.length} of its ${size} bytes` : undefined;

/** A stable id. Two dead letters have the same id only if they are equal in everything. */
function contentId(content: Buffer, ...facts: unknown[]): string {
  const hash = createHash('sha256').update(JSON.stringify(facts)).update(content);
  return `sha256:${hash.digest('hex').slice(0, 16)}`;
}
