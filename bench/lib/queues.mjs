import amqp from 'amqplib';

const QUEUES = ['users', 'notifications']
  .flatMap((service) => ['calls', 'calls.queries', 'commands', 'queries'].map((queue) => `${service}.${queue}`))
  .concat('notifications.events');

/**
 * @param {string} url
 * @returns {Promise<number>} in all queues of ours
 */
export async function messagesLeft(url) {
  const counts = await onQueues(url, (channel, queue) => channel.checkQueue(queue));
  return counts.reduce((sum, { messageCount }) => sum + messageCount, 0);
}

/**
 * The commands that a failed run has left must not be done during the next.
 * @param {string} url
 */
export const purge = (url) => onQueues(url, (channel, queue) => channel.purgeQueue(queue));

/**
 * @template T
 * @param {string} url
 * @param {(channel: amqp.Channel, queue: string) => Promise<T>} work
 * @returns {Promise<T[]>}
 */
async function onQueues(url, work) {
  const connection = await amqp.connect(url);
  try {
    const channel = await connection.createChannel();
    /** @type {T[]} */
    const results = [];
    for (const queue of QUEUES) results.push(await work(channel, queue));
    return results;
  } finally {
    await connection.close();
  }
}
