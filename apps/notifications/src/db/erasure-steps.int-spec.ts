import { Logger } from '@nestjs/common';
import { eventually } from '@app/testing/eventually';
import { deleteBy } from '@app/postgres/retention/deletion-loop';
import { DAY_MS } from '../../test/days';
import { CANARY, DOCUMENT, Erasures, naming, VERSION } from '../../test/erasures';
import { aNotification } from '../../test/notifications';
import { FORGET_ERASURES } from './retention.repository';

let on: Erasures;
beforeAll(async () => {
  on = await Erasures.start();
});
beforeEach(() => on.empty());
afterAll(() => on?.stop());

it('leaves nothing of a user in any table but a hash, and other tenants, organizations and users as they were', async () => {
  const places = [
    ['tenant', 'a'],
    ['tenant', 'b'],
    ['tenant', 'kept'],
    ['other', 'a'],
  ] as const;
  for (const [tenant, organization] of places) await on.storeAll(tenant, organization);
  const before = await on.traces();
  const bob = await on.traces('bob');
  expect(before).toHaveLength(7 * places.length);
  await on.order({ organizationIds: ['b', 'a', 'unknown'] });
  await on.erased();
  expect(await on.traces()).toEqual(before.filter((trace) => /^(tenant\/kept|other\/a) /.test(trace)));
  expect(await on.traces('bob')).toEqual(bob);
  expect(await on.dataSource.query(`SELECT user_ids, organization_ids FROM erasures`)).toEqual([
    { user_ids: null, organization_ids: ['b', 'a', 'unknown'] },
  ]);
  const { type, data, apiKey, organizationId } = on.published[0];
  expect({ type, data: JSON.parse(data) as object, apiKey, organizationId }).toEqual({
    type: 'user.data-deleted.v1',
    data: { userIds: [CANARY], organizationIds: ['b', 'a', 'unknown'] },
    apiKey: 'tenant',
    organizationId: 'tenant',
  });
  await on.order({ id: 'everywhere' });
  await on.erased();
  expect(await on.traces()).toEqual(before.filter((trace) => trace.startsWith('other/a ')));
});

it('says that an erasure is complete after the commit, and not when that fails', async () => {
  const log = jest.spyOn(Logger.prototype, 'log').mockReturnValue();
  await on.dataSource.query(`
    CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'no commit'; END $$;
    CREATE CONSTRAINT TRIGGER refuse AFTER INSERT ON outbox DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION refuse()`);
  await on.order();
  try {
    await expect(on.erased()).rejects.toThrow('no commit');
    expect([log.mock.calls, on.published]).toEqual([[], []]);
  } finally {
    await on.dataSource.query('DROP FUNCTION refuse() CASCADE');
  }
  await on.erased();
  expect(log.mock.calls).toEqual([[{ msg: 'an erasure is complete', erasure: 'event', users: 1, seconds: expect.any(Number) }]]);
  expect(on.published).toHaveLength(1);
  log.mockRestore();
});

it('keeps the rest of a notification', async () => {
  await on.store(naming());
  await on.order();
  await on.erased();
  const [{ content, size }] = await on.dataSource.query<[{ content: object; size: number }]>(
    'SELECT content, size FROM notifications',
  );
  expect(content).toEqual({
    ...naming().content,
    actionUser: { userId: 'erased' },
    displayHeadlineMessageTemplateData: {
      actionUser: { userId: 'erased' },
      recipientUser: { userId: 'bob', name: 'Bob' },
      place: 'here',
    },
    notifyUsers: [{ userId: 'bob', name: 'Bob' }],
  });
  expect(size).toBe(JSON.stringify(content).length);
});

it('rewrites 8 MiB in one step at most, and the notification that exceeds it', async () => {
  const large = naming().content;
  large.displayBodyMessage = 'x'.repeat(1024 * 1024);
  for (let n = 0; n < 12; n++) await on.store(aNotification({ id: `n${100 + n}`, content: large }));
  await on.order();
  const steps = on.stepsOf();
  const rewritten: number[] = [];
  for (let outcome, before = 12; outcome !== 'idle';) {
    outcome = await steps.step();
    if (outcome === 'waiting') await on.publishAll();
    const named = await on.dataSource.query<unknown[]>(`SELECT FROM notifications WHERE content::text LIKE '%canary%'`);
    rewritten.push(before - named.length);
    before = named.length;
  }
  expect(Math.max(...rewritten)).toBeLessThanOrEqual(9);
  expect(await on.traces()).toEqual([]);
});

it('looks again at a notification that has changed since it was read', async () => {
  for (const organizationId of ['a', 'b']) await on.store(naming({ organizationId }));
  await on.order();
  const steps = on.stepsOf();
  for (let ofPeople = 0; ofPeople < 2; ofPeople++) await steps.step();
  const rival = on.dataSources[1].createQueryRunner();
  await rival.startTransaction();
  await rival.query(`
    UPDATE notifications SET content = jsonb_set(content::jsonb, '{displayBodyMessage}', '"changed"')::json
    WHERE organization = (SELECT id FROM organizations WHERE organization_id = 'a')`);
  const erased = on.erased(steps);
  await eventually(async () => {
    const locked = `SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`;
    return ((await rival.query(locked)) as unknown[]).length > 0;
  });
  await rival.commitTransaction();
  await rival.release();
  await erased;
  expect(await on.traces()).toEqual([]);
});

it('leaves what is stored later', async () => {
  const upTo = Date.now() - 10_000;
  await on.storeAll('tenant', 'a');
  await on.order({ upTo, version: 4 });
  await on.erased();
  expect((await on.traces()).map((trace) => trace.split(' ')[1])).toEqual([
    'notifications',
    'recipients',
    'readings',
    'members',
    'departures',
  ]);
});

it('brings back no membership that has ended, at no step', async () => {
  await on.store(naming());
  await on.members.leave('tenant', 'org', [{ userId: CANARY, version: 5 }]);
  // More than one step deletes.
  await on.dataSource.query(
    `INSERT INTO members SELECT id, $1, 'document', 'd' || n, 1 FROM organizations, generate_series(1, 5001) n`,
    [CANARY],
  );
  await on.order();
  const steps = on.stepsOf();
  const lefts: number[] = [];
  for (let left = Infinity; left > 0; lefts.push(left)) {
    await steps.step();
    const known = await on.members.known('tenant', 'org', CANARY, { most: 5001 });
    expect(known.filter(({ live }) => live)).toEqual([]);
    left = known.length;
  }
  expect(lefts).toEqual([1, 0]);
  await on.erased(steps);
  expect(await on.traces()).toEqual([]);
});

it('refuses older events about the user from the order on, and lets the next read ask', async () => {
  await on.store(naming({ notifyAll: true }));
  await on.order();
  await on.erased();
  const old = [{ userId: CANARY, version: VERSION }];
  await on.members.add('tenant', 'org', DOCUMENT, [...old, { userId: 'bob', version: VERSION }]);
  await on.members.add('tenant', 'org', DOCUMENT, [{ userId: CANARY }]);
  await on.members.remove('tenant', 'org', DOCUMENT, old);
  await on.members.leave('tenant', 'org', old);
  expect(await on.traces()).toEqual([]);
  expect(await on.traces('bob')).toContain('tenant/org members');
  await on.members.complete('tenant', 'org', CANARY, { memberships: [], wrong: [] });
  await on.members.add('tenant', 'org', DOCUMENT, old);
  expect(await on.members.find('tenant', 'org', CANARY)).toMatchObject({ complete: false });
  await on.members.add('tenant', 'org', DOCUMENT, [{ userId: CANARY, version: VERSION + 1 }]);
  await on.members.add('other', 'org', DOCUMENT, old);
  expect(await on.traces()).toEqual(['other/org members', 'tenant/org members']);
});

it('refuses older events also when it is forgotten', async () => {
  await on.store(naming({ notifyAll: true }));
  await on.order();
  await on.erased();
  await on.dataSource.query(`UPDATE erasures SET received_at = received_at - interval '7 days 1 minute'`);
  await deleteBy(on.dataSource, FORGET_ERASURES, [10]);
  expect(await on.dataSource.query('SELECT FROM erased_users')).toEqual([]);
  // She is back, and complete.
  await on.members.complete('tenant', 'org', CANARY, {
    memberships: [{ level: 'folder', id: 'f', version: VERSION + 1 }],
    wrong: [],
  });
  await on.members.add('tenant', 'org', DOCUMENT, [{ userId: CANARY, version: VERSION }], Date.now() - 7 * DAY_MS);
  expect((await on.members.known('tenant', 'org', CANARY, { most: 2 })).map(({ level }) => level)).toEqual(['folder']);
  expect(await on.members.find('tenant', 'org', CANARY)).toMatchObject({ complete: false });
});
