import { EventEmitter } from 'node:events';
import type { Channel, ConsumeMessage } from 'amqplib';
import { endOf } from '@app/amqp/connection/opened-channel';
import { commandMessage } from '@app/amqp/messages/command-format';
import { AddUsers } from '@app/contracts/users.add';
import { commandsOf } from './commands-of';

/** A message with three commands, and what happened to it. */
function shared() {
  const settled: string[] = [];
  const channel = new EventEmitter() as Channel;
  void endOf(channel, () => undefined);
  const requests = ['a', 'b', 'c'].map((id) => ({
    operation: AddUsers,
    body: Buffer.from('{}'),
    options: { apiKey: 'key', requestId: id, timeoutMs: 1000, messageId: id },
    correlationId: id,
    deadline: performance.now() + 1000,
  }));
  const { body, properties } = commandMessage(requests, 'all', { appId: 'test', userId: 'test' }, 'replies');
  const message = { content: body, fields: { exchange: 'calls', routingKey: AddUsers.pattern }, properties };
  const parts = commandsOf(message as unknown as ConsumeMessage, {
    channel,
    ack: () => settled.push('ack'),
    ackForGood: () => Promise.resolve(Boolean(settled.push('for good'))),
    requeue: () => settled.push('requeue'),
  });
  const [a, b, c] = parts.map(({ message: part, acks }) => ({
    ack: () => acks.ack(part),
    ackForGood: () => acks.ackForGood(part),
    requeue: () => acks.requeue(part),
  }));
  return { channel, settled, a, b, c };
}

describe('the acks of commands that share a message', () => {
  it('are for good when the last command is settled', async () => {
    const { channel, settled, a, b, c } = shared();
    const listeners = channel.listenerCount('close');
    const known = Promise.all([a.ackForGood(), b.ackForGood()]);
    await Promise.resolve();
    expect(settled).toEqual([]);
    c.ack();
    expect(await known).toEqual([true, true]);
    expect(settled).toEqual(['ack', 'for good', 'for good']);
    expect(channel.listenerCount('close')).toBe(listeners);
  });

  it('are not for good when one of them is to be delivered again', async () => {
    const { channel, settled, a, b, c } = shared();
    const listeners = channel.listenerCount('close');
    const known = a.ackForGood();
    b.requeue();
    c.ack();
    expect(await known).toBe(false);
    expect(settled).toEqual(['requeue']);
    expect(channel.listenerCount('close')).toBe(listeners);
  });

  it('count once for each command: what is settled is not delivered again', () => {
    const { settled, a, b, c } = shared();
    a.ack();
    a.requeue();
    a.ack();
    b.ack();
    expect(settled).toEqual([]);
    c.ack();
    c.requeue();
    expect(settled).toEqual(['ack']);
  });

  it('are not for good when the channel ends before the last one is settled', async () => {
    const { channel, settled, a, b, c } = shared();
    const known = a.ackForGood();
    b.ack();
    channel.emit('close');
    expect(await known).toBe(false);
    expect(await c.ackForGood()).toBe(true);
    expect(settled).toEqual(['ack', 'for good']);
  });

  it('do not wait at a channel that has ended', async () => {
    const { channel, settled, a } = shared();
    channel.emit('close');
    expect(await a.ackForGood()).toBe(false);
    expect(settled).toEqual([]);
  });
});
