import amqp from 'amqplib';
import { built } from './built.mjs';

/**
 * @param {string} url
 * @returns {Promise<number>} in all queues of ours, with retries and dead letters
 */
export async function messagesLeft(url) {
  const counts = await onQueues(url, (channel, queue) => channel.checkQueue(queue));
  return counts.reduce((sum, { messageCount }) => sum + messageCount, 0);
}

/**
 * Messages that a failed run has left must not be handled during the next.
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
    const { QUEUES } = built('libs/rabbitmq/src/topology/topology');
    for (const { name } of QUEUES) results.push(await work(channel, name));
    return results;
  } finally {
    await connection.close();
  }
}
