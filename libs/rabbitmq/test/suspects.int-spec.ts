import type { Message } from 'amqplib';
import { openOwnQueue } from '@app/amqp/connection/own-queue';
import { eventually } from '@app/testing/eventually';
import type { DeliveryContext } from '../src/delivery/delivery-context';
import { COMMANDS, crashingUsers, PAUSE_MS, SUSPECTS } from './crashing-users';

describe('suspects', () => {
  const users = crashingUsers();

  it('are commands that were delivered twice before; one delivery is not enough', async () => {
    await users.publish('twice');
    await users.crash(COMMANDS, 1);
    await users.publish('once');
    await users.crash(COMMANDS, 1);
    const handled: string[] = [];
    users.handlers.add = ({ organizationId }) => handled.push(organizationId);
    await users.start();
    await eventually(() => handled.length === 2);
    expect(handled.toSorted()).toEqual(['once', 'twice']);
    expect(await users.settled('suspect')).toBe(1);
  });

  it('are not commands whose publisher sets x-delivery-count', async () => {
    await users.publish('liar', { headers: { 'x-api-key': 'key', 'x-delivery-count': 7 } });
    let handled = 0;
    users.handlers.add = () => void handled++;
    await users.start();
    await eventually(() => handled === 1);
    expect(await users.settled('suspect')).toBe(0);
  });

  it('are handled and answered like the original command', async () => {
    const replies: Message[] = [];
    const replyTo = await openOwnQueue(users.channel, { exchange: 'replies' }, (reply) => replies.push(reply));
    const deadline = Date.now() + 30_000;
    const headers = { 'x-api-key': 'key', 'x-deadline': deadline, 'x-idempotency-key': 'i', 'x-request-id': 'r', 'x-mine': 1 };
    await users.publish('org', { headers, replyTo, correlationId: 'the caller', messageId: 'm', appId: 'importer' });
    await users.publish('org', { headers, replyTo });
    await users.crash(COMMANDS, 2);
    const seen: DeliveryContext[] = [];
    users.handlers.add = (_, context) => {
      seen.push(context);
      return { done: true };
    };
    await users.start();
    await eventually(() => replies.length === 2);
    expect(replies.map(({ properties: { correlationId } }) => correlationId as unknown)).toEqual(['the caller', undefined]);
    expect(replies.map(({ content }) => JSON.parse(content.toString()) as unknown)).toEqual([{ done: true }, { done: true }]);
    expect(seen[0]).toMatchObject({
      apiKey: 'key',
      messageId: 'm',
      requestId: 'r',
      deadline,
      idempotencyKey: 'i',
      awaited: true,
      attempt: 1,
      pattern: 'users.add.v1',
      appId: 'importer',
    });
  });

  /** Commands that end when their gate is opened. */
  const gated = () => {
    const events: string[] = [];
    const gates = new Map<string, () => void>();
    users.handlers.add = async ({ organizationId }) => {
      events.push(`begin ${organizationId}`);
      await new Promise<void>((resolve) => gates.set(organizationId, resolve));
      events.push(`end ${organizationId}`);
      return {};
    };
    const end = async (organizationId: string) => {
      await eventually(() => gates.has(organizationId));
      gates.get(organizationId)?.();
    };
    return { events, gates, end };
  };

  it('are handled alone: running commands end first, and no other command starts meanwhile', async () => {
    await users.publish('suspect 1');
    await users.publish('suspect 2');
    await users.crash(COMMANDS, 2);
    const { events, gates, end } = gated();
    // The server starts first, so that it runs when they arrive.
    await users.start();
    await eventually(() => events.length === 1);
    await users.publish('other');
    await end('suspect 1');
    await expect(eventually(() => gates.has('other'), 200)).rejects.toThrow();
    await end('suspect 2');
    await end('other');
    await eventually(() => events.length === 6);
    expect(events).toEqual(['suspect 1', 'suspect 2', 'other'].flatMap((name) => [`begin ${name}`, `end ${name}`]));
    await eventually(() => users.server?.check() === undefined);
  });

  it('are handled alone also when a command has waited for the process that has ended', async () => {
    const { events, gates, end } = gated();
    await users.publish('waiting');
    await users.crash(COMMANDS, 1);
    await users.start(PAUSE_MS);
    await users.publishSuspect('suspect');
    await eventually(() => gates.has('suspect'));
    // Its wait is over within this time.
    await expect(eventually(() => gates.has('waiting'), PAUSE_MS + 500)).rejects.toThrow();
    await end('suspect');
    await end('waiting');
    await eventually(() => events.length === 4);
    expect(events).toEqual(['begin suspect', 'end suspect', 'begin waiting', 'end waiting']);
  });

  it('wait for the commands that are running', async () => {
    const { events, gates, end } = gated();
    await users.start();
    await users.publish('running');
    await eventually(() => events.length === 1);
    await users.publishSuspect('suspect');
    await eventually(async () => (await users.messagesIn(SUSPECTS)) === 0);
    await expect(eventually(() => gates.has('suspect'), 200)).rejects.toThrow();
    await end('running');
    await end('suspect');
    await eventually(() => events.length === 4);
    expect(events).toEqual(['begin running', 'end running', 'begin suspect', 'end suspect']);
  });
});
