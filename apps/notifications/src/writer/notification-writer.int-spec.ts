import { eventually } from '@app/testing/eventually';
import { aNotification } from '../../test/notifications';
import { stored, TwoWriters } from '../../test/two-writers';
import { InsertNotificationsRepository } from '../db/insert-notifications.repository';
import { NotificationWriter } from './notification-writer';

describe(NotificationWriter.name, () => {
  let writers: TwoWriters;
  let writer: NotificationWriter;
  let otherWriter: NotificationWriter;

  beforeAll(async () => void (writers = await TwoWriters.start()));
  beforeEach(() => {
    writers.renew();
    ({ writer, otherWriter } = writers);
  });
  afterEach(() => writers.empty());
  afterAll(() => writers?.stop());

  it('stores a notification with its recipients, organization and document', async () => {
    await expect(writer.add(aNotification({ to: ['a', 'b'] }))).resolves.toEqual(stored('n1'));
    expect(await writers.ids()).toEqual(['n1']);
    expect(await writers.count('recipients')).toBe(2);
    expect(await writers.count('organizations')).toBe(1);
    expect(await writers.count('documents')).toBe(1);
  });

  it('publishes one event for each stored notification, and no other', async () => {
    writers.published.length = 0;
    const differences = { documentId: 'd', locationId: 'l', notifyAll: true, to: ['a', 'b'] };
    await Promise.all([writer.add(aNotification(differences)), otherWriter.add(aNotification(differences))]);
    await writer.add(aNotification({ ...differences, to: ['c'] }));
    await writer.add(aNotification({ id: 'late', deadline: Date.now() - 1 }));
    await eventually(() => writers.published.length > 0);
    await eventually(async () => (await writers.count('outbox')) === 0);
    expect(writers.published).toMatchObject([{ type: 'notification.added.v1', apiKey: 'tenant', organizationId: 'org' }]);
    expect(JSON.parse(writers.published[0].data)).toEqual({
      notificationId: 'n1',
      organizationId: 'org',
      documentId: 'd',
      locationId: 'l',
      notifyAll: true,
      timestamp: expect.any(Number),
      version: 1,
      actionUser: { userId: 'actor' },
      displayHeadlineMessageTemplate: 'Hello',
      notifyUsers: [{ userId: 'a' }, { userId: 'b' }],
    });
  });

  it('publishes each of 500 notifications once, while both writers also look at the table', async () => {
    writers.published.length = 0;
    for (const relay of writers.relays) relay.start();
    for (let round = 0; round < 50; round++) {
      await Promise.all(
        Array.from({ length: 10 }, (_, index) => {
          const notification = aNotification({ id: `n${round}-${index}`, documentId: `d${index % 3}` });
          return Promise.all((index % 2 ? [writer, otherWriter] : [otherWriter, writer]).map((each) => each.add(notification)));
        }),
      );
      writers.relays[round % 2].wake();
    }
    await eventually(async () => (await writers.count('outbox')) === 0);
    expect(writers.published).toHaveLength(500);
    expect(
      new Set(writers.published.map(({ data }) => (JSON.parse(data) as { notificationId: string }).notificationId)).size,
    ).toBe(500);
    expect(new Set(writers.published.map(({ id }) => id)).size).toBe(500);
  });

  it('stores the same notification once when it is added 100 times in parallel by two writers', async () => {
    const outcomes = await Promise.all(
      Array.from({ length: 100 }, (_, index) => (index % 2 ? writer : otherWriter).add(aNotification())),
    );
    expect(new Set(outcomes.map((outcome) => JSON.stringify(outcome)))).toEqual(new Set([JSON.stringify(stored('n1'))]));
    expect(await writers.ids()).toEqual(['n1']);
    expect(await writers.count('recipients')).toBe(1);
  });

  it('distinguishes a repetition from another notification with the same id, in one batch and across batches', async () => {
    const other = aNotification({ documentId: 'other' });
    const [first, second] = await Promise.all([writer.add(aNotification()), writer.add(other)]);
    expect([first?.outcome, second?.outcome]).toEqual(['stored', 'different']);
    await expect(writer.add(other)).resolves.toEqual({ outcome: 'different' });
    await expect(writer.add(aNotification())).resolves.toEqual(stored('n1'));
    expect(await writers.count('documents')).toBe(1);
  });

  it('keeps equal ids of two tenants and of two organizations apart', async () => {
    await Promise.all([
      writer.add(aNotification()),
      writer.add(aNotification({ apiKey: 'other tenant', documentId: 'x' })),
      writer.add(aNotification({ organizationId: 'other org', documentId: 'y' })),
    ]);
    expect(await writers.ids()).toEqual(['n1', 'n1', 'n1']);
  });

  it.each([
    [31, [31]],
    [100, [50, 50]],
    [300, [128, 128]],
  ])('takes %p waiting notifications into the next commits: %p', async (waiting, sizes) => {
    const insert = jest.spyOn(InsertNotificationsRepository.prototype, 'insert');
    await Promise.all(Array.from({ length: waiting }, (_, index) => writer.add(aNotification({ id: `n${index}` }))));
    expect(insert.mock.calls.slice(0, sizes.length).map(([batch]) => batch.length)).toEqual(sizes);
    insert.mockRestore();
    expect(await writers.count('notifications')).toBe(waiting);
  });

  it('halves the recipients of few notifications between two commits', async () => {
    const insert = jest.spyOn(InsertNotificationsRepository.prototype, 'insert');
    const to = Array.from({ length: 100 }, (_, index) => `u${index}`);
    await Promise.all(Array.from({ length: 8 }, (_, index) => writer.add(aNotification({ id: `n${index}`, to }))));
    expect(insert.mock.calls.slice(0, 2).map(([batch]) => batch.length)).toEqual([4, 4]);
    insert.mockRestore();
    expect(await writers.count('recipients')).toBe(800);
  });

  it('lets no heavy one, and none with a near deadline, share a statement with usual ones', async () => {
    // Without it two statements would create the organization, and one of them would be tried again.
    await writer.add(aNotification());
    const insert = jest.spyOn(InsertNotificationsRepository.prototype, 'insert');
    const to = Array.from({ length: 100 }, (_, index) => `u${index}`);
    const deadline = Date.now() + 1900;
    const kinds = { usual: {}, hurried: { deadline }, heavy: { to }, both: { to, deadline } };
    const all = Object.entries(kinds).flatMap(([name, more]) =>
      [1, 2].map((n) => aNotification({ id: `${name} ${n}`, ...more })),
    );
    await Promise.all(all.map((notification) => writer.add(notification)));
    const batches = insert.mock.calls.map(([batch]) => batch.map(({ id }) => id));
    insert.mockRestore();
    // On a busy machine a hurried statement is cancelled and tried again.
    const once = batches.filter((batch, index) => batches.findIndex((one) => one.join() === batch.join()) === index);
    expect(once.sort()).toEqual([
      ['both 1', 'both 2'],
      ['heavy 1', 'heavy 2'],
      ['hurried 1', 'hurried 2'],
      ['usual 1', 'usual 2'],
    ]);
  });

  it('stores a notification anew whose organization is deleted while it is written', async () => {
    await writer.add(aNotification());
    const deleting = writers.dataSources[1].createQueryRunner();
    try {
      await deleting.startTransaction();
      for (const table of ['recipients', 'notifications', 'documents', 'organizations'])
        await deleting.query(`DELETE FROM ${table}`);
      // The organization of a new document is looked up before its row is stored.
      const written = writer.add(aNotification({ id: 'n2', documentId: 'other' }));
      await eventually(() => writers.isBlocked());
      await deleting.commitTransaction();
      await expect(written).resolves.toEqual(stored('n2'));
    } finally {
      await deleting.release();
    }
    expect(await writers.ids()).toEqual(['n2']);
    expect([await writers.count('organizations'), await writers.count('documents')]).toEqual([1, 1]);
  });

  it('stores the other notifications of a batch when the database rejects one', async () => {
    // PostgreSQL cannot store NUL. Validation rejects it; this test bypasses validation.
    const batch = [1, 2, 3, 4, 5].map((number) =>
      aNotification({ id: `n${number}`, documentId: number === 3 ? 'bad\0' : 'doc' }),
    );
    const outcomes = await Promise.allSettled(batch.map((notification) => writer.add(notification)));
    expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled', 'rejected', 'fulfilled', 'fulfilled']);
    expect(await writers.ids()).toEqual(['n1', 'n2', 'n4', 'n5']);
  });

  it('skips a notification after its deadline, and stores the others of the batch', async () => {
    const [late, timely] = await Promise.all([
      writer.add(aNotification({ id: 'late', deadline: Date.now() - 1000 })),
      writer.add(aNotification({ id: 'timely', deadline: Date.now() + 60_000 })),
    ]);
    expect(late).toEqual({ outcome: 'expired' });
    expect(timely).toEqual(stored('timely'));
    expect(await writers.ids()).toEqual(['timely']);
  });

  it('survives two writers that create the same organizations and rows in opposite orders', async () => {
    const batch = Array.from({ length: 200 }, (_, index) =>
      aNotification({ id: `n${index}`, organizationId: `org${index % 20}` }),
    );
    const outcomes = await Promise.all([
      ...batch.map((notification) => writer.add(notification)),
      ...[...batch].reverse().map((notification) => otherWriter.add(notification)),
    ]);
    expect(outcomes.filter(({ outcome }) => outcome === 'stored')).toHaveLength(400);
    expect(await writers.count('notifications')).toBe(200);
    expect(await writers.count('recipients')).toBe(200);
    expect(await writers.count('organizations')).toBe(20);
  });
});
