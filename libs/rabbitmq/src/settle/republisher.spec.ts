import { EventEmitter } from 'node:events';
import { Logger } from '@nestjs/common';
import type { Channel } from 'amqplib';
import { endOf } from '@app/amqp/connection/opened-channel';
import type { PublishOutcome } from '@app/amqp/publishing/publisher';
import { eventually } from '@app/testing/eventually';
import { aDelivery } from '../../test/a-delivery';
import { RETRY_DELAYS } from '../topology/topology';
import { Republisher } from './republisher';

const error = { status: 'UNAVAILABLE', message: 'Not now.' } as const;
const RETRY = { do: 'retryThenAck', delay: RETRY_DELAYS[0], error } as const;
const REFUSED = { do: 'refuseThenAck', error, stub: false } as const;

/** The broker's side is the test: it confirms when it wants. */
function setUp() {
  const published: ((outcome: PublishOutcome) => void)[] = [];
  const channel = new EventEmitter() as Channel;
  void endOf(channel, () => undefined);
  let held = 0;
  const lines: object[] = [];
  jest.spyOn(Logger.prototype, 'warn').mockImplementation((line: object) => void lines.push(line));
  const republisher = new Republisher({
    service: 'users',
    account: 'users',
    publisher: { unconfirmedMs: 20, publish: () => new Promise((confirm) => published.push(confirm)) },
    heldDeliveries: { change: (_, by) => void (held += by) },
    closing: new AbortController().signal,
  });
  const delivery = aDelivery({ userId: 'importer' }, { acks: { channel } });
  return { republisher, delivery, channel, published, lines, held: () => held };
}

describe(Republisher.name, () => {
  afterEach(() => void jest.restoreAllMocks());

  it('counts a delivery as held while its publication is not confirmed, and does not publish it twice', async () => {
    const { republisher, delivery, published, held, lines } = setUp();
    const done = republisher.publish(delivery, RETRY);
    expect(held()).toBe(0);
    await eventually(() => held() === 1);
    published[0]('confirmed');
    expect(await done).toBe(true);
    expect([held(), published.length]).toEqual([0, 1]);
    expect(lines).toEqual([
      expect.objectContaining({ publisher: 'importer', routingKey: 'users.retry.1s', outcome: 'unconfirmed' }),
    ]);
  });

  it('gives up a refused one without a confirm after 5 minutes, and no other one', async () => {
    let passedMs = 0;
    jest.spyOn(performance, 'now').mockImplementation(() => passedMs);
    const refused = setUp();
    const retried = setUp();
    const ends: string[] = [];
    const ended = (name: string, work: Promise<boolean>) => work.then((done) => ends.push(`${name}: ${done}`));
    const all = [
      ended('refused', refused.republisher.publish(refused.delivery, REFUSED)),
      ended('retried', retried.republisher.publish(retried.delivery, RETRY)),
    ];
    await eventually(() => refused.held() + retried.held() === 2);
    passedMs = 300_000;
    const looks = jest.spyOn(refused.republisher, 'isOver');
    await eventually(() => looks.mock.calls.length > 1);
    expect(ends).toEqual([]);
    passedMs = 300_001;
    await all[0];
    expect([ends, refused.held(), retried.held()]).toEqual([['refused: false'], 0, 1]);
    retried.channel.emit('close');
    await all[1];
    expect([ends[1], retried.held()]).toEqual(['retried: false', 0]);
  });
});
