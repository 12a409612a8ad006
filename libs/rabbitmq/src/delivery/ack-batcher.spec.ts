import { EventEmitter } from 'node:events';
import type { Channel, ConsumeMessage } from 'amqplib';
import { AckBatcher } from './ack-batcher';

const message = (deliveryTag: number) => ({ fields: { deliveryTag } }) as ConsumeMessage;

const endOfTurn = () => new Promise((resolve) => setImmediate(resolve));

/** An AckBatcher with six deliveries, and the frames that it sent. */
function recorded() {
  const sent: string[] = [];
  const channel = Object.assign(new EventEmitter(), {
    ack: ({ fields }: ConsumeMessage, allUpTo: boolean) => sent.push(`ack ${allUpTo ? 'up to ' : ''}${fields.deliveryTag}`),
    nack: ({ fields }: ConsumeMessage) => sent.push(`nack ${fields.deliveryTag}`),
  });
  const acks = new AckBatcher(channel as unknown as Channel);
  for (let tag = 1; tag <= 6; tag++) acks.delivered(message(tag));
  return { sent, acks };
}

describe(AckBatcher.name, () => {
  it('sends the acks of one turn in one frame', async () => {
    const { sent, acks } = recorded();
    for (const tag of [3, 1, 2]) acks.ack(message(tag));
    expect(sent).toEqual([]);
    await endOfTurn();
    expect(sent).toEqual(['ack up to 3']);
  });

  it('never acknowledges a delivery that is still being handled', async () => {
    const { sent, acks } = recorded();
    for (const tag of [1, 3, 5, 6]) acks.ack(message(tag));
    await endOfTurn();
    expect(sent).toEqual(['ack up to 1', 'ack 3', 'ack 5', 'ack 6']);
    acks.ack(message(2));
    acks.ack(message(4));
    await endOfTurn();
    expect(sent.slice(4)).toEqual(['ack up to 4']);
  });

  it('requeues at once, and steps over requeued deliveries', async () => {
    const { sent, acks } = recorded();
    acks.ack(message(1));
    acks.ack(message(3));
    acks.requeue(message(2));
    await endOfTurn();
    expect(sent).toEqual(['nack 2', 'ack up to 3']);
  });

  it('settles nothing twice', async () => {
    const { sent, acks } = recorded();
    acks.ack(message(1));
    acks.ack(message(1));
    acks.flush();
    acks.ack(message(1));
    acks.requeue(message(1));
    await endOfTurn();
    expect(sent).toEqual(['ack up to 1']);
  });
});
