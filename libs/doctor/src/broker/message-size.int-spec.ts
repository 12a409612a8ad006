import { within } from '@app/runtime/within';
import { declareTopology } from '@app/rabbitmq/topology/declare-topology';
import { PrivateServer } from '@app/testing/system/private-server';
import { Findings } from '../finding';
import { lookAtAccount } from './accounts';

const MEBIBYTE = 1024 * 1024;
const WAIT_MS = 20_000;

describe('the look at the size of messages', () => {
  let broker: PrivateServer;

  beforeAll(async () => (broker = await PrivateServer.start('rabbitmq')));
  afterAll(() => broker?.remove());

  const lookAt = async (account: Parameters<typeof lookAtAccount>[1], subject: string, answerMs?: number) => {
    const findings = new Findings('broker');
    await lookAtAccount(findings, account, { url: broker.url, tlsFiles: {} }, true, answerMs);
    return findings.all.find((found) => found.subject === subject);
  };
  const look = (answerMs?: number) => lookAt('full-rights', 'message size', answerMs);
  /** As if the broker had started with it: it keeps the setting in one of these, by its version. */
  const allow = (bytes: number) =>
    broker.order(
      `rabbitmqctl eval application:set_env(rabbit,max_message_size,${bytes}),persistent_term:put(max_message_size,${bytes}).`,
    );

  it('is content with 5 MiB, warns above it, and says what to do', async () => {
    expect(await look()).toMatchObject({ state: 'ok', found: 'the broker refuses messages of more than 5 MiB' });
    await allow(128 * MEBIBYTE);
    expect(await look()).toMatchObject({
      state: 'warning',
      found: expect.stringContaining('more than 5 MiB') as string,
      action: expect.stringContaining('max_message_size = 5242880') as string,
    });
  });

  it('does not wait for a broker that is short of memory, and neither does the look at the rights of an account', async () => {
    await declareTopology(broker.url);
    await broker.order('memory alarm on');
    const looks = Promise.all([look(1000), lookAt('publisher', 'account publisher', 1000)]);
    expect(await within(WAIT_MS, looks)).toBe(true);
    expect(await looks).toMatchObject([
      { state: 'skipped' },
      {
        state: 'problem',
        found: 'connects, but the broker did not answer for 1 s',
        action: 'see docs/runbooks/BrokerBlocked.md',
      },
    ]);
    await broker.order('memory alarm off');
  });
});
