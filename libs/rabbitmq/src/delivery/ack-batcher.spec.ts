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
    prefetch: () =>
      new Promise<void>((resolve, reject) => {
        sent.push('asked');
        answers.push({ resolve, reject });
      }),
  });
  const answers: { resolve: () => void; reject: (error: Error) => void }[] = [];
  const acks = new AckBatcher(channel as unknown as Channel, 6);
  for (let tag = 1; tag <= 6; tag++) acks.delivered(message(tag));
  return { sent, acks, answers };
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

  it('asks once for all acks that wait for an answer, and not before they are sent', async () => {
    const { sent, acks, answers } = recorded();
    const known: (readonly [number, boolean])[] = [];
    const good = (tag: number) => acks.ackForGood(message(tag)).then((isGood) => known.push([tag, isGood]));
    const first = good(1);
    await endOfTurn();
    const others = [good(3), good(4)];
    await endOfTurn();
    expect(sent).toEqual(['ack up to 1', 'asked', 'ack 3', 'ack 4']);
    answers[0].resolve();
    await first;
    await endOfTurn();
    expect(known).toEqual([[1, true]]);
    expect(sent.slice(4)).toEqual(['asked']);
    answers[1].reject(new Error('the channel has ended'));
    await Promise.all(others);
    expect(known.slice(1)).toEqual([
      [3, false],
      [4, false],
    ]);
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
