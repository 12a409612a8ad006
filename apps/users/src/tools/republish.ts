import { setTimeout as sleep } from 'node:timers/promises';
import { soFar } from '@app/runtime/so-far';
import { KINDS, START, type RepublishRepository } from '../db/republish.repository';

/** Rows of one page, and so the users of one event: listeners take at most 1000. */
const PAGE = 500;
/** Most unpublished events before the tool waits. New events queue behind them, and this number delays them for a fraction of a second. */
const MOST_WAITING = 1000;
const LOOK_MS = 100;
const REPORT_EVERY_MS = 5000;

export interface RepublishOptions {
  /** Most rows of the database per second: listeners must keep up. */
  rate: number;
  print: (line: string) => void;
  /** Default: {@link PAGE}. */
  pageSize?: number;
}

/**
 * Publishes all documents, memberships and ends of memberships again, in new events that are marked as republished. An end of more than 30 days ago may be
 * deleted. A change made meanwhile has its own event with a greater version. If the run is interrupted, it can be started again.
 *
 * @returns the written events, and the rows that they are about
 */
export async function republish(
  repository: RepublishRepository,
  { rate, print, pageSize = PAGE }: RepublishOptions,
): Promise<{ events: number; rows: Record<string, number> }> {
  const written = { events: 0, rows: {} as Record<string, number> };
  const say = soFar(print);
  for (const kind of KINDS) {
    let rows = 0;
    for (let last = START; ;) {
      await room(repository, print);
      const startedAt = performance.now();
      const page = await repository.writePage(kind, last, pageSize);
      if (!page) break;
      last = page.last;
      rows += page.rows;
      written.events += page.events;
      say(kind, rows);
      await sleep(Math.max(0, (page.rows / rate) * 1000 - (performance.now() - startedAt)));
    }
    print(`${kind}: ${rows}`);
    written.rows[kind] = rows;
  }
  return written;
}

/** Resolves when the outbox has room for another page. */
async function room(repository: RepublishRepository, print: (line: string) => void): Promise<void> {
  for (let reportedAt = performance.now(); (await repository.waiting(MOST_WAITING)) === MOST_WAITING; await sleep(LOOK_MS)) {
    if (performance.now() - reportedAt < REPORT_EVERY_MS) continue;
    print('waiting: the events written so far are not published yet');
    reportedAt = performance.now();
  }
}
