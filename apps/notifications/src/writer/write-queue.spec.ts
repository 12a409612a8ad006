import { createHash } from 'node:crypto';
import type { NewNotification } from '../db/insert-notifications.repository';
import { WriteQueues, type Entry, type WriteQueue } from './write-queue';

let queues: WriteQueues;
beforeEach(() => void (queues = new WriteQueues()));

/** Adds notifications that wait, and returns their queue. */
function wait(apiKey: string, count: number, recipients: number, more: Partial<NewNotification> = {}): WriteQueue {
  const entries = Array.from({ length: count }, (_, number): Entry => {
    const notifyUsers = Array.from({ length: recipients }, (__, user) => ({ userId: `u${user}` }));
    const content = { actionUser: { userId: 'a' }, displayHeadlineMessageTemplate: 't', notifyUsers };
    const id = `${apiKey} ${number}`;
    const fingerprint = createHash('sha256').update(id).digest();
    const notification = { apiKey, organizationId: 'o', id, documentId: 'd', notifyAll: false, fingerprint, content, ...more };
    return { notification, tries: 0, resolve: () => undefined, reject: () => undefined };
  });
  const queue = queues.of(entries[0].notification);
  queue.waiting.push(...entries);
  return queue;
}

const taken = (queue: WriteQueue, alone = true) => {
  const { leaders, followers } = queue.take(alone, new Set());
  return [...leaders, ...followers].map(({ notification }) => notification);
};
const recipientsOf = (notifications: NewNotification[]) =>
  notifications.reduce((sum, { content }) => sum + content.notifyUsers.length, 0);

it('takes API keys in turn, so that many recipients of one do not delay another', () => {
  const queue = wait('many', 64, 99);
  wait('other', 2, 1);
  const batch = taken(queue);
  expect(batch.filter(({ apiKey }) => apiKey === 'other')).toHaveLength(2);
  expect(recipientsOf(batch)).toBe(2 + 5 * 99);
});

it('takes API keys in turn, so that many notifications of one do not delay another', () => {
  const queue = wait('many', 300, 0);
  wait('other', 1, 0);
  expect(taken(queue).at(-1)?.apiKey).toBe('other');
});

it('takes each notification once, and gives each API key as many places', () => {
  const queue = wait('a', 40, 50);
  for (const apiKey of ['b', 'c']) wait(apiKey, 10, 50);
  const batches: NewNotification[][] = [];
  while (queue.waiting.length > 0) batches.push(taken(queue, false));
  const ids = batches.flat().map(({ id }) => id);
  expect([ids.length, new Set(ids).size]).toEqual([60, 60]);
  for (const apiKey of ['a', 'b', 'c'])
    expect(
      batches
        .slice(0, 3)
        .flat()
        .filter((one) => one.apiKey === apiKey),
    ).toHaveLength(10);
});

it('bounds the recipients of large ones beside small ones of another API key, and not beside those of its own', () => {
  const large = wait('many', 64, 110);
  wait('many', 1, 1);
  expect(taken(large, false)).toHaveLength(64);
  wait('many', 64, 110);
  wait('other', 1, 1);
  expect(recipientsOf(taken(large, false))).toBe(4 * 110);
});

it('bounds them also when the first that waits is of the other API key', () => {
  wait('other', 1, 1);
  const large = wait('other', 1, 110);
  wait('many', 64, 110);
  expect(taken(large).length).toBeLessThan(10);
});

it('bounds no recipients of an API key that is alone', () => {
  expect(taken(wait('many', 64, 99), false)).toHaveLength(64);
});

it('takes one that has more recipients than a batch may have', () => {
  wait('other', 1, 1);
  expect(taken(wait('many', 2, 1001))).toHaveLength(1);
});
