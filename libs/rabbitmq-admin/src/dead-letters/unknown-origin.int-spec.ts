import { AGAIN, DEAD, deadLetterBox } from '@app/testing/broker/dead-letter-box';
import { eventually } from '@app/testing/eventually';

/** Dead letters of versions before 0.2: it is not proved that a service wrote their headers. */
describe('dead letters of unknown origin', () => {
  const box = deadLetterBox();

  const unvouched = { userId: undefined };
  const says = (origin: string) => ({ 'x-origin-user': origin });

  it('are shown with their headers, marked as unproved', async () => {
    await box.bury([['m-1', says(box.account), unvouched]]);
    const [table] = (await box.tool('list')).printed;
    expect(table.replace(/ {2,}/g, ' | ').split('\n')[2]).toBe(
      '1 | m-1 | users.add.v1? | NOT_FOUND? | key | origin unknown | - | 1? | 2026-01-01T00:00:00.000Z? | - | 47 | No such organization.',
    );
    expect(await box.listed('list --status NOT_FOUND')).toMatchObject([
      { origin: 'unknown', publisher: null, unproved: ['operation', 'status', 'reason', 'attempts', 'firstFailedAt'] },
    ]);
    const [shown] = (await box.tool('show --id m-1')).printed;
    expect(shown).toContain(
      '  origin: unknown: not proved to be from a service, so any publisher may have written its headers\n',
    );
    expect(shown).toContain(`\nHeaders (unproved)\n`);
    expect(shown).toContain(`  x-origin-user: ${box.account}\n`);
  });

  it('stay, with a hint, until an account is named; then they have its rights', async () => {
    await box.bury([['m-1', says(box.account), unvouched]]);
    expect((await box.tool('replay --all')).audited).toMatchObject([
      {
        outcome: 'kept',
        publisher: null,
        reason: 'its origin is unknown: inspect it with show, and choose the account whose rights it gets with --as ACCOUNT',
      },
    ]);
    expect(await box.ready(DEAD)).toBe(1);
    expect((await box.tool('replay --all --as billing')).audited).toMatchObject([{ outcome: 'replayed', publisher: 'billing' }]);
    const [{ properties }] = await box.take(AGAIN);
    expect(properties.userId).toBe(box.account);
    expect(properties.headers).toEqual({
      'x-api-key': 'key',
      'x-routing-key': 'users.add.v1',
      'x-lane': 'commands',
      'x-origin-user': 'billing',
    });
  });

  it('cannot reach operations that only services may publish, unless the account of a service is named', async () => {
    await box.bury([
      ['m-1', { 'x-routing-key': 'users.authorize.v1' }, unvouched],
      ['m-2', { 'x-routing-key': 'access.check.v1' }, unvouched],
    ]);
    await box.bury([['e-1', { 'x-routing-key': 'user.added.v1' }, unvouched]], 'notifications.commands.dead');
    const { audited } = await box.tool('replay --all --as billing');
    expect(audited.map(({ outcome, reason }) => [outcome, reason])).toEqual(
      Array(3).fill(['kept', 'only services may publish its operation: name the account of the service with --as ACCOUNT']),
    );
    expect((await box.tool('replay --id e-1 --as service')).noted).toEqual(['1 replayed.']);
    expect((await box.take('notifications.again'))[0].properties.headers).toMatchObject({ 'x-origin-user': 'service' });
  });

  it('get the rights of a service only one by one', async () => {
    await box.bury([['m-1', says('service'), unvouched]]);
    for (const line of ['replay --all --as service', `replay --api-key key --as ${box.account}`]) {
      await expect(box.tool(line)).rejects.toThrow('may do anything for every tenant: --as with it needs --id ID');
    }
    expect((await box.tool('replay --id m-1 --as service')).noted).toEqual(['1 replayed.']);
  });

  it('with --as: dead letters with a known publisher keep their rights', async () => {
    await box.bury([
      ['m-1', says('ci')],
      ['m-2', { 'x-origin-user': undefined }],
    ]);
    expect((await box.tool('replay --all --as billing')).audited.map(({ publisher }) => publisher)).toEqual(['ci', null]);
  });

  it('do not get the rights of their user_id: a service that is not configured here looks the same', async () => {
    const account = `other-${box.vhost}`;
    await box.publishAs(account, 'dead', DEAD, { messageId: 'm-1', headers: says('evil') });
    await eventually(async () => (await box.ready(DEAD)) === 1);
    expect(await box.listed('list')).toMatchObject([{ origin: 'unknown', publisher: null }]);
    expect((await box.tool('replay --all')).noted).toEqual(['1 kept.']);
    await box.broker.management.delete(`users/${account}`);
  });
});
