import type { ChannelModel, ConfirmChannel } from 'amqplib';
import { destroySocket, openConnection } from '@app/amqp/connection/open-connection';
import { within } from '@app/runtime/within';
import { declareTopology } from '@app/rabbitmq/topology/declare-topology';
import { parseBrokerUrl } from '@app/runtime/settings/broker-url';
import { eventually } from '@app/testing/eventually';
import { PrivateServer } from '@app/testing/system/private-server';
import type { AuditLine } from './audit';
import { readCommandLine } from './command-line';
import { BOUNDS } from './opened-queue';
import { run } from './run';

const DEAD = 'users.commands.dead';
const WAIT_MS = 20_000;
/** Longest wait for an answer that does not come. */
const SHORT_MS = 500;

describe('dead letters in a broker that does not answer', () => {
  let broker: PrivateServer;
  let model: ChannelModel;
  let channel: ConfirmChannel;
  let audited: AuditLine[];
  const tools: ChannelModel[] = [];

  beforeAll(async () => {
    broker = await PrivateServer.start('rabbitmq');
    await declareTopology(broker.url);
    model = await openConnection({ url: broker.url, name: 'test' });
    channel = await model.createConfirmChannel();
  });
  beforeEach(async () => {
    audited = [];
    for (const queue of [DEAD, 'users.again']) await channel.purgeQueue(queue);
    for (const messageId of ['m-0', 'm-1'])
      channel.publish('dead', DEAD, Buffer.from('{}'), {
        persistent: true,
        messageId,
        userId: parseBrokerUrl(broker.url).username,
        headers: { 'x-routing-key': 'users.add.v1', 'x-api-key': 'key' },
      });
    await channel.waitForConfirms();
    await eventually(async () => (await channel.checkQueue(DEAD)).messageCount === 2);
  });
  afterEach(() => endTools());
  afterAll(async () => {
    await model?.close();
    await broker?.remove();
  });

  /** As the program does at its end: the letters that it has asked for go back. */
  const endTools = () => tools.splice(0).forEach((tool) => destroySocket(tool));

  /** Runs the tool on a connection of its own. */
  async function tool(line: string, answerMs = WAIT_MS): Promise<boolean> {
    const own = await openConnection({ url: broker.url, name: 'dead letters' });
    tools.push(own);
    const account = parseBrokerUrl(broker.url).username;
    return run(own, readCommandLine(line.split(' '))!, {
      print: () => undefined,
      note: () => undefined,
      audit: (audit) => void audited.push(audit),
      accounts: { own: account, services: new Set([account]) },
      signal: new AbortController().signal,
      bounds: { ...BOUNDS, answerMs },
    });
  }

  /** Runs the tool until it ends for this reason: on a busy machine an answer that does come may be late, too. */
  const endsFor = (line: string, reason: string) =>
    eventually(async () => {
      endTools();
      audited = [];
      const outcome = tool(line, SHORT_MS);
      expect(await within(WAIT_MS, outcome)).toBe(true);
      return outcome.then(
        () => false,
        (error: unknown) => (error as Error).message.includes(reason),
      );
    });

  it('ends a replay while the broker is short of memory, and says which letter may have been published', async () => {
    await broker.order('memory alarm on');
    try {
      await endsFor('replay --all', 'The broker has not confirmed m-0 within 0.5 s: it may be short of memory or disk');
      expect(audited).toMatchObject([{ id: 'm-0', outcome: 'kept' }]);
      expect(audited[0]?.reason).toMatch(/^it is not known whether it was published/);
      // The letters are free again while the alarm lasts, and can be dropped.
      endTools();
      await eventually(() => tool('drop --id m-1 --yes'));
    } finally {
      await broker.order('memory alarm off');
    }
  });

  it('does not take a queue for empty whose leader does not answer', async () => {
    await broker.queues('suspend', DEAD);
    try {
      // The broker says so meanwhile.
      expect((await channel.checkQueue(DEAD)).messageCount).toBe(0);
      await endsFor('list', `${DEAD}: its leader in the broker did not answer for 0.5 s.`);
    } finally {
      await broker.queues('resume', DEAD);
    }
    endTools();
    await eventually(async () => (await channel.checkQueue(DEAD)).messageCount === 2);
    expect(await tool('drop --all --yes')).toBe(true);
    expect(audited.map(({ id }) => id)).toEqual(['m-0', 'm-1']);
  });
});
