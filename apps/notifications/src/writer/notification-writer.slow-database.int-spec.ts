import type { QueryRunner } from 'typeorm';
import { eventually } from '@app/testing/eventually';
import { aNotification } from '../../test/notifications';
import { stored, TwoWriters, withKey } from '../../test/two-writers';
import type { NewNotification } from '../db/insert-notifications.repository';
import { writerWaiting } from '../metrics';
import { NotificationWriter } from './notification-writer';

describe(`${NotificationWriter.name} while the database is slow with one batch`, () => {
  let writers: TwoWriters;
  let writer: NotificationWriter;
  let blocking: QueryRunner;

  beforeAll(async () => void (writers = await TwoWriters.start()));
  beforeEach(async () => {
    writers.renew();
    ({ writer } = writers);
    blocking = writers.dataSources[1].createQueryRunner();
    await blocking.startTransaction();
    await blocking.query(`INSERT INTO organizations (api_key, organization_id) VALUES ('tenant', 'blocked')`);
  });
  afterEach(async () => {
    await blocking.release();
    await writers.empty();
  });
  afterAll(() => writers?.stop());

  const neighbours = (): NewNotification[] => Array.from({ length: 64 }, (_, index) => aNotification({ id: `n${index}` }));

  it('writes a second one', async () => {
    const blocked = writer.add(aNotification({ id: 'blocked', organizationId: 'blocked' }));
    await eventually(() => writers.isBlocked());
    await Promise.all(neighbours().map((notification) => writer.add(notification)));
    expect(await writers.count('notifications')).toBe(64);
    await blocking.rollbackTransaction();
    await expect(blocked).resolves.toEqual(stored('blocked'));
  });

  it('writes a single usual one beside heavy ones, and beside one with a near deadline', async () => {
    const to = Array.from({ length: 100 }, (_, index) => `u${index}`);
    const heavy = writer.add(aNotification({ id: 'heavy', organizationId: 'blocked', to }));
    await eventually(() => writers.isBlocked());
    const hurried = writer.add(aNotification({ id: 'hurried', organizationId: 'blocked', deadline: Date.now() + 1500 }));
    await expect(writer.add(aNotification({ id: 'usual' }))).resolves.toEqual(stored('usual'));
    await blocking.rollbackTransaction();
    await expect(heavy).resolves.toEqual(stored('heavy'));
    await hurried;
  });

  it('counts those that wait meanwhile', async () => {
    const blocked = writer.add(aNotification({ id: 'blocked', organizationId: 'blocked' }));
    await eventually(() => writers.isBlocked());
    const waiting = [1, 2, 3].map((number) => writer.add(aNotification({ id: `n${number}`, organizationId: 'blocked' })));
    expect((await writerWaiting.get()).values).toMatchObject([{ value: 3 }]);
    await blocking.rollbackTransaction();
    await Promise.all([blocked, ...waiting]);
    expect((await writerWaiting.get()).values).toMatchObject([{ value: 0 }]);
  });

  it('gives the outbox the time before the statement, from which the age of its events counts', async () => {
    const add = jest.spyOn(writers.relays[0], 'add');
    const blocked = writer.add(aNotification({ id: 'blocked', organizationId: 'blocked' }));
    await eventually(() => writers.isBlocked());
    const waiting = performance.now();
    await blocking.rollbackTransaction();
    await blocked;
    const [[events, since]] = add.mock.calls;
    add.mockRestore();
    expect(events).toHaveLength(1);
    expect(since).toBeLessThan(waiting);
  });

  it('delays only notifications with the same Idempotency-Key', async () => {
    const blocked = writer.add(withKey('k', { id: 'blocked', organizationId: 'blocked' }));
    await eventually(() => writers.isBlocked());
    const repeated = writer.add(withKey('k', { id: 'repeated' }));
    await Promise.all(neighbours().map((notification) => writer.add(notification)));
    await blocking.rollbackTransaction();
    await expect(Promise.all([blocked, repeated])).resolves.toEqual([stored('blocked'), stored('blocked')]);
    expect(await writers.count('notifications')).toBe(65);
  });
});
