import type { Channel } from 'amqplib';
import { RabbitChannel } from './channel';
import { RabbitConnection } from './connection';
import { silent } from './observer';

describe('RabbitChannel', () => {
  it('lets many callers wait, and ends all waits when it is closed', async () => {
    const warnings: string[] = [];
    const onWarning = ({ message }: Error) => warnings.push(message);
    process.on('warning', onWarning);
    // Never started, so never ready.
    const options = { url: 'amqp://127.0.0.1:1', name: 'test' };
    const connection = new RabbitConnection(options, silent);
    const channel = new RabbitChannel<Channel>(connection, {
      name: 'waited for',
      open: (model) => model.createChannel(),
      setup: async () => undefined,
    });
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
});
