import { openConnection } from '@app/amqp/connection/open-connection';
import { within } from '@app/runtime/within';
import { createTestBroker, type TestBroker } from '@app/testing/broker/broker';
import { CHANNEL_CLOSE_OK, FaultProxy } from '../../../../test/faults/harness/fault-proxy';
import { Findings } from '../finding';
import { lookAtAccount } from './accounts';

/** First bytes of method frames: class and number. */
const CONNECTION_CLOSE = Buffer.from([0, 10, 0, 50]);
const BASIC_PUBLISH = Buffer.from([0, 60, 0, 40]);
const WAIT_MS = 20_000;

describe('the doctor and a connection that is lost', () => {
  let broker: TestBroker;
  let proxy: FaultProxy;

  beforeAll(async () => {
    broker = await createTestBroker();
    const model = await openConnection({ url: broker.url, name: 'test' });
    await (await model.createChannel()).assertExchange('commands', 'topic');
    await model.close();
    proxy = await FaultProxy.to(broker.url);
  });
  afterAll(async () => {
    await proxy?.close();
    await broker?.drop();
  });

  // A promise that never settles would end the program without a word, and with exit code 0.
  it.each([
    ['while it publishes', BASIC_PUBLISH],
    ['while a channel closes', CHANNEL_CLOSE_OK],
    ['while it closes', CONNECTION_CLOSE],
  ])('%s, ends its look', async (_, frame) => {
    let isCut = false;
    proxy.inspector = (bytes) => {
      const cuts = bytes.includes(frame);
      isCut ||= cuts;
      return cuts ? 'cut' : 'pass';
    };
    const findings = new Findings('broker');
    const look = lookAtAccount(findings, 'publisher', { url: proxy.through(broker.url), tlsFiles: {} });
    expect(await within(WAIT_MS, look)).toBe(true);
    expect(isCut).toBe(true);
    await look.catch((error: unknown) => expect(String(error)).toMatch(/connection/i));
  });
});
