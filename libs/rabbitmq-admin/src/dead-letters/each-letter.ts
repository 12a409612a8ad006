import type { ChannelModel } from 'amqplib';
import { readDeadLetter, type DeadLetter } from './dead-letter';
import { matches, type Filter } from './filter';
import type { LetterQueue } from './letter-queue';
import { countLetters, OpenedQueue, type Bounds } from './opened-queue';

/** Which dead letters are visited. */
export interface Search {
  queues: readonly LetterQueue[];
  filter: Filter;
  /** Most letters. */
  limit: number;
  /** Broker accounts of the services, whose headers are trusted. */
  services: ReadonlySet<string>;
  /** Ends the search after the current letter. */
  signal: AbortSignal;
  bounds?: Bounds;
}

export interface LetterVisitor {
  /** May remove the letter from its queue, until it resolves. */
  visit(queue: OpenedQueue, letter: DeadLetter): Promise<void>;
  endOfQueue?(queue: OpenedQueue): void;
}

/**
 * Visits all matching dead letters, queue by queue from the head. A letter stays in its place unless the visitor removes it.
 *
 * @throws DeadLetterError when another search has a queue open, or an error of the broker
 */
export async function eachLetter(model: ChannelModel, search: Search, visitor: LetterVisitor): Promise<void> {
  let left = search.limit;
  const counts = await countLetters(
    model,
    search.queues.map(({ name }) => name),
    search.bounds,
  );
  for (const [index, from] of search.queues.entries()) {
    if (left <= 0 || search.signal.aborted) break;
    const queue = await OpenedQueue.open(model, from.name, search.bounds);
    try {
      for await (const { message, position } of queue.letters(search.signal, counts[index])) {
        const letter = readDeadLetter(message, from, position, search.services);
        if (!matches(search.filter, letter)) continue;
        await visitor.visit(queue, letter);
        if (--left <= 0) break;
      }
    } finally {
      await queue.close();
    }
    visitor.endOfQueue?.(queue);
  }
}
