import type { Channel } from 'amqplib';
import { RabbitChannel } from './channel';
import { RabbitConnection } from './connection';
import { silent } from './observer';
import { LONGEST_MS } from '@app/runtime/within';

/** A channel that is never ready, because its connection is never started. */
function neverReady() {
  const connection = new RabbitConnection({ url: 'amqp://127.0.0.1:1', name: 'test' }, silent);
  const channel = new RabbitChannel<Channel>(connection, {
    name: 'waited for',
    open: (model) => model.createChannel(),
    setup: async () => undefined,
  });
  return { connection, channel };
}

describe('RabbitChannel', () => {
  it('lets many callers wait, and ends all waits when it is closed', async () => {
    const warnings: string[] = [];
    const onWarning = ({ message }: Error) => warnings.push(message);
    process.on('warning', onWarning);
    const { connection, channel } = neverReady();
    const listeners = () => channel.listenerCount('open') + connection.listenerCount('state');
    const before = listeners();
    const waits = Array.from({ length: 300 }, () => channel.whenReady(60_000));
    // Node searches through all listeners to remove one: 50,000 callers would stop the process for seconds.
    expect(listeners()).toBe(before);
    await channel.close();
    expect(new Set(await Promise.all(waits))).toEqual(new Set([false]));
    await new Promise(setImmediate);
    process.off('warning', onWarning);
    expect(warnings).toEqual([]);
  });

  it('lets a caller wait without end that gives Infinity', async () => {
    const { channel } = neverReady();
    // Node takes a time that is too long for 1 ms.
    const timers = jest.spyOn(globalThis, 'setTimeout');
    const wait = channel.whenReady(Infinity);
    expect(timers.mock.calls.map(([, ms]) => ms)).toEqual([LONGEST_MS]);
    timers.mockRestore();
    await channel.close();
    expect(await wait).toBe(false);
  });
});
