import { Logger } from '@nestjs/common';
import type { Message } from 'amqplib';
import { openOwnQueue } from '@app/amqp/connection/own-queue';
import { eventually } from '@app/testing/eventually';
import { AGAIN, COMMANDS, CRASHED, crashingUsers, PAUSE_MS, SUSPECTS } from './crashing-users';

describe('suspects whose processes have ended', () => {
  const users = crashingUsers();

  it('wait after a crash, and hold up no other command meanwhile', async () => {
    await users.publishSuspect('suspect');
    await users.crash(SUSPECTS, 1);
    const handled: string[] = [];
    users.handlers.add = ({ organizationId }) => handled.push(organizationId);
    await users.start(PAUSE_MS);
    await users.publish('other');
    await eventually(() => handled.length === 2);
    expect(handled).toEqual(['other', 'suspect']);
  });

  it('leave time after a crash before the next one is handled', async () => {
    await users.publishSuspect('suspect');
    await users.crash(SUSPECTS, 1);
    await users.publishSuspect('next');
    const handled: string[] = [];
    users.handlers.add = ({ organizationId }) => handled.push(organizationId);
    await users.start(PAUSE_MS);
    await eventually(() => users.isWaiting());
    await expect(eventually(() => handled.length > 0, PAUSE_MS / 3)).rejects.toThrow();
    await eventually(() => handled.length === 2);
  });

  it('leave time also after one that is given up', async () => {
    await users.publishSuspect('suspect', { headers: { 'x-crashes': 3 } });
    await users.crash(SUSPECTS, 1);
    await users.publishSuspect('next');
    const handled: string[] = [];
    users.handlers.add = ({ organizationId }) => handled.push(organizationId);
    await users.start(PAUSE_MS);
    await eventually(async () => (await users.settled('crashed')) === 1);
    await expect(eventually(() => handled.length > 0, PAUSE_MS / 3)).rejects.toThrow();
    await eventually(() => handled.length === 1);
    expect(handled).toEqual(['next']);
  });

  it('are not given up for processes that end while they wait', async () => {
    await users.publishSuspect('suspect');
    await users.crash(SUSPECTS, 1);
    for (let time = 0; time < 4; time++) {
      await users.start(60_000);
      await eventually(() => users.isWaiting());
      await users.stop();
      await eventually(async () => (await users.messagesIn(AGAIN)) === 1);
    }
    let handled = 0;
    users.handlers.add = () => void handled++;
    await users.start();
    await eventually(() => handled === 1);
    expect(await users.messagesIn(CRASHED)).toBe(0);
  });

  it('wait before they become suspects for the process that has ended, unless their caller waits', async () => {
    await users.publish('suspect');
    await users.publish('awaited', { replyTo: 'q', headers: { 'x-api-key': 'key', 'x-deadline': Date.now() + 30_000 } });
    await users.crash(COMMANDS, 2);
    const handled: string[] = [];
    users.handlers.add = ({ organizationId }) => handled.push(organizationId);
    await users.start(PAUSE_MS);
    await eventually(() => handled.length === 1);
    await users.publish('other');
    await eventually(() => handled.length === 3);
    expect(handled).toEqual(['awaited', 'other', 'suspect']);
  });

  it('are not handled again after a crash, when their caller would be gone after the wait', async () => {
    const replies: Message[] = [];
    const replyTo = await openOwnQueue(users.channel, { exchange: 'replies' }, (reply) => replies.push(reply));
    await users.publishSuspect('suspect', { headers: { 'x-deadline': Date.now() + 30_000 }, replyTo });
    await users.crash(SUSPECTS, 1);
    let handled = 0;
    users.handlers.add = () => void handled++;
    await users.start(60_000);
    await eventually(() => replies.length === 1);
    expect(replies[0].properties.headers).toEqual({ 'x-status': 'DEADLINE_EXCEEDED' });
    expect(handled).toBe(0);
  });

  it('go to the crashed queue after four more crashes, also when they waited after each of them', async () => {
    const headers = { 'x-correlation-id': 'c', 'x-first-failed-at': 1_800_000_000_000 };
    await users.publishSuspect('poison', { messageId: 'poison', replyTo: 'q', headers });
    const lines: { msg: string; crashes?: number; reason?: string }[] = [];
    jest.spyOn(Logger.prototype, 'warn').mockImplementation((line: (typeof lines)[number]) => void lines.push(line));
    let handled = 0;
    users.handlers.add = () => {
      handled++;
      return new Promise(() => undefined);
    };
    for (let time = 1; time <= 4; time++) {
      await users.start();
      await eventually(() => handled === time);
      await users.stop();
    }
    await users.start();
    const { properties } = await users.takeLetter();
    expect(handled).toBe(4);
    // Counted when the confirm of the letter has come.
    await eventually(async () => (await users.settled('crashed')) === 1);
    expect(properties).toMatchObject({ messageId: 'poison', replyTo: 'q', userId: users.account });
    expect(properties.headers).toMatchObject({
      'x-routing-key': 'users.add.v1',
      ...headers,
      'x-crashes': 4,
    });
    const told = [/waits before/, /handled alone/].map((text) =>
      lines.flatMap(({ msg, crashes }) => (text.test(msg) ? [crashes] : [])),
    );
    expect(told).toEqual([
      [1, 2, 3],
      [1, 2, 3],
    ]);
    expect(lines.at(-1)?.reason).toBe('4 processes that handled it have ended.');
  });

  it('go to the crashed queue after four more crashes, unchanged', async () => {
    await users.publish('poison', { messageId: 'poison', replyTo: 'q', correlationId: 'c' });
    await users.crash(COMMANDS, 2);
    users.handlers.add = () => new Promise(() => undefined);
    await users.start();
    await eventually(async () => (await users.settled('suspect')) === 1);
    await users.stop();
    await eventually(async () => (await users.messagesIn(SUSPECTS)) === 1);
    await users.crash(SUSPECTS, 3);
    const { properties } = await users.takeLetter();
    expect(properties).toMatchObject({ messageId: 'poison', replyTo: 'q', userId: users.account });
    expect(properties.headers).toMatchObject({
      'x-routing-key': 'users.add.v1',
      'x-correlation-id': 'c',
      'x-death': [{ reason: 'delivery_limit', queue: SUSPECTS }],
    });
  });
});
