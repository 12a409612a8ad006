import { deadLetterBox } from '@app/testing/broker/dead-letter-box';
import { eventually } from '@app/testing/eventually';

describe('events among the dead letters', () => {
  const box = deadLetterBox();

  it('are replayed to the listening service after it failed to handle them', async () => {
    await box.bury([['e-1', { 'x-routing-key': 'user.added.v1', 'x-dead-status': 'INTERNAL' }]], 'notifications.commands.dead');
    expect((await box.tool('replay --id e-1')).noted).toEqual(['1 replayed.']);
    expect(await box.takeIds('notifications.again')).toEqual(['e-1']);
  });

  it('are replayed as published after the delivery limit', async () => {
    const properties = { persistent: true, messageId: 'e-1', type: 'user.added.v1', userId: box.account };
    box.channel.publish('events.own', 'user.added.v1', Buffer.from('{}'), properties);
    await box.channel.waitForConfirms();
    // The delivery limit of its queue is 20.
    for (let delivery = 0; delivery <= 20; delivery++) {
      const event = await eventually(() => box.channel.get('notifications.events'));
      if (event) box.channel.nack(event);
    }
    await eventually(async () => (await box.ready('notifications.commands.refused')) === 1);
    expect(await box.listed('list')).toMatchObject([
      { origin: 'service', publisher: box.account, operation: 'user.added.v1', status: 'CRASHED', unproved: [] },
    ]);
    expect((await box.tool('replay --all')).noted).toEqual(['1 replayed.']);
    const [{ properties: replayed }] = await box.take('notifications.again');
    expect(replayed.messageId).toBe('e-1');
    expect(replayed.headers).toEqual({
      'x-routing-key': 'user.added.v1',
      'x-lane': 'commands',
      'x-origin-user': box.account,
    });
  });
});
