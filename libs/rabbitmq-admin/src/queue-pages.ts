import type { ManagementApi } from './management-api';

/** Most queues in one answer: the broker allows no more. */
const MOST_OF_PAGE = 500;
/** Queues that the broker has named: those of replies, and of events for one process. An account with `--replies` may have any number of them. */
const BY_THE_BROKER = '^amq\\.gen-';
const BY_US = '^(?!amq\\.gen-)';

/** Some of the queues, in the order of their names. */
export interface QueuePage<T> {
  items: T[];
  /** Number of queues in all pages. */
  filtered_count: number;
  page_count: number;
}

/**
 * Queues of the virtual host with their figures, but for those that the broker has named.
 *
 * @param page from 1
 * @param size queues of a page, at most 500
 * @throws Error of the management API
 */
export const queuePage = <T>(api: ManagementApi, page: number, size: number): Promise<QueuePage<T>> =>
  pageOf<T>(api, BY_US, page, size);

/**
 * Every such queue.
 *
 * @param names a regular expression, for some of them
 * @throws Error of the management API
 */
export async function lastingQueues<T>(api: ManagementApi, names = BY_US): Promise<T[]> {
  const all: T[] = [];
  for (let page = 1; ; page++) {
    const { items, page_count: pages } = await pageOf<T>(api, names, page, MOST_OF_PAGE);
    all.push(...items);
    if (page >= pages) return all;
  }
}

/** Number of the queues that the broker has named. @throws Error of the management API */
export const queuesOfConnections = async (api: ManagementApi): Promise<number> =>
  (await pageOf(api, BY_THE_BROKER, 1, 1)).filtered_count;

function pageOf<T>(api: ManagementApi, names: string, page: number, size: number): Promise<QueuePage<T>> {
  // The last one is for a broker that collects no figures: its answer has no lengths otherwise.
  const asked = `page=${page}&page_size=${size}&name=${encodeURIComponent(names)}&use_regex=true&enable_queue_totals=true`;
  return api.existing<QueuePage<T>>(`queues/${api.vhost}?${asked}`);
}
