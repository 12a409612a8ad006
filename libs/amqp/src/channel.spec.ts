import type { Channel } from 'amqplib';
import { RabbitChannel } from './channel';
import { RabbitConnection } from './connection';
import { silent } from './observer';

describe('RabbitChannel', () => {
  it('may be waited for by many, and by none of them for longer than until it is closed', async () => {
    const warnings: string[] = [];
    const onWarning = ({ message }: Error) => warnings.push(message);
    process.on('warning', onWarning);
    // Never started, so never there.
    const options = { url: 'amqp://127.0.0.1:1', name: 'test' };
    const connection = new RabbitConnection(options, silent);
    const channel = new RabbitChannel<Channel>(connection, {
      name: 'waited for',
      open: (model) => model.createChannel(),
      setup: async () => undefined,
    });
    const waits = Array.from({ length: 300 }, () => channel.whenReady(60_000));
    await channel.close();
    expect(new Set(await Promise.all(waits))).toEqual(new Set([false]));
    await new Promise(setImmediate);
    process.off('warning', onWarning);
    expect(warnings).toEqual([]);
  });
});
