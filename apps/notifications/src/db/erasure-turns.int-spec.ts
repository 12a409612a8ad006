import type { DataSource } from 'typeorm';
import { CANARY, Erasures, naming } from '../../test/erasures';
import { aNotification } from '../../test/notifications';

let on: Erasures;
beforeAll(async () => {
  on = await Erasures.start();
});
beforeEach(() => on.empty());
afterAll(() => on?.stop());

it('is complete after any number of ends, by several processes at once', async () => {
  for (const organizationId of ['o1', 'o2', 'o3'])
    await on.store(...Array.from({ length: 100 }, (_, n) => naming({ id: `n${100 + n}`, organizationId })));
  await on.order();
  // Each process does a step of its own choice, and one in three steps is rolled back at its end.
  let steps = 0;
  const broken = (source: DataSource) =>
    new Proxy(source, {
      get: (target, name) =>
        name !== 'transaction'
          ? (Reflect.get(target, name) as unknown)
          : (work: (manager: unknown) => Promise<unknown>) =>
              target.transaction(async (manager) => {
                const done = await work(manager);
                if (++steps % 3 === 0) throw new Error('the end of a process');
                return done;
              }),
    });
  const loops = on.dataSources.map(async (source) => {
    const process = on.stepsOf(broken(source));
    for (let outcome; outcome !== 'idle';) {
      outcome = await process.step().catch(() => 'failed');
      if (outcome === 'waiting') await on.publishAll();
    }
  });
  await Promise.all(loops);
  expect(await on.traces()).toEqual([]);
  expect(on.published).toHaveLength(1);
});

it('lets the erasures of API keys take turns', async () => {
  for (let n = 0; n < 100; n++) await on.order({ id: `busy ${n}`, apiKey: 'busy' });
  await on.order({ id: 'other', apiKey: 'other' });
  const steps = on.stepsOf();
  for (let step = 0; step < 100 && !on.published.some(({ apiKey }) => apiKey === 'other'); step++) {
    await steps.step();
    await on.publishAll();
  }
  const keys = on.published.map(({ apiKey }) => apiKey);
  expect(keys).toContain('other');
  expect(keys.filter((key) => key === 'busy').length).toBeLessThan(3);
});

it('takes large steps for an API key beside one whose steps fail', async () => {
  await on.store(naming());
  for (let batch = 0; batch < 20; batch++)
    await on.store(...Array.from({ length: 100 }, (_, n) => aNotification({ id: `${batch} ${n}`, apiKey: 'other' })));
  await on.dataSource.query(`
    CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE query_canceled; END $$;
    CREATE TRIGGER slow BEFORE UPDATE ON notifications FOR EACH ROW EXECUTE FUNCTION refuse()`);
  try {
    const steps = on.stepsOf();
    // No step is slow, on the slowest machine.
    jest.spyOn(performance, 'now').mockReturnValue(0);
    await on.order();
    for (let taken = 0; taken < 20; taken++) await steps.step().catch(() => 'failed');
    await on.order({ id: 'other', apiKey: 'other' });
    const looked: unknown[] = [];
    for (let taken = 0; taken < 100 && on.published.length === 0; taken++) {
      const outcome = await steps.step().catch(() => 'failed');
      await on.publishAll();
      const [position] = await on.dataSource.query<{ at: string | null }[]>(
        `SELECT at_notification AS at FROM erasures WHERE id = 'other' AND stage = 'notifications'`,
      );
      if (position && outcome === 'done') looked.push(position.at);
    }
    expect(on.published.map(({ apiKey }) => apiKey)).toEqual(['other']);
    // With the least number of notifications there are thirty.
    expect(looked.length).toBeLessThan(8);
  } finally {
    jest.restoreAllMocks();
    await on.dataSource.query('DROP FUNCTION refuse CASCADE');
  }
});

it('does not let an erasure that waits hold up others, of the same API key or of another', async () => {
  await on.order({ id: 'not settled', upTo: Date.now() + 60_000 });
  await on.order({ id: 'same key' });
  await on.order({ id: 'other key', apiKey: 'other' });
  // The broker takes no events.
  await on.store(naming());
  const steps = on.stepsOf();
  for (let step = 0; step < 20; step++) await steps.step();
  const stages = await on.dataSource.query<{ id: string; stage: string }[]>(
    'SELECT id, stage FROM erasures ORDER BY received_at',
  );
  expect(stages).toEqual([
    { id: 'not settled', stage: 'people' },
    { id: 'same key', stage: 'people again' },
    { id: 'other key', stage: 'people again' },
  ]);
  expect(await steps.step()).toBe('waiting');
  await on.publishAll();
  for (let step = 0; step < 20; step++) await steps.step();
  expect(on.published.map(({ apiKey }) => apiKey).toSorted()).toEqual(['other', 'tenant']);
});

it('begins when everything is visible that was stored before, and ends after a wait for what others have in hand', async () => {
  await on.store(naming());
  const rival = on.dataSources[1].createQueryRunner();
  await rival.startTransaction();
  await rival.query(`
    WITH late AS (INSERT INTO notifications SELECT organization, 'late', "timestamp", document_id, location_id, notify_all, size, fingerprint, content FROM notifications)
    INSERT INTO recipients SELECT organization, user_id, "timestamp", 'late', document_id FROM recipients`);
  await on.order();
  expect(await on.stepsOf().step()).toBe('waiting');
  await rival.commitTransaction();
  await rival.release();
  const steps = on.stepsOf(on.dataSource, 60_000);
  for (let outcome; outcome !== 'waiting'; outcome = await steps.step());
  expect(on.published).toEqual([]);
  expect(await on.traces()).toEqual([]);
  // An answer of the users service that was asked for before.
  await on.members.complete('tenant', 'org', CANARY, { memberships: [], wrong: [] });
  expect(await steps.step()).toBe('waiting');
  // An event is not published yet.
  expect(await on.stepsOf().step()).toBe('waiting');
  await on.erased();
  expect(await on.traces()).toEqual([]);
  expect(on.published).toHaveLength(1);
});

it('does nothing twice for a repeated order', async () => {
  await on.order();
  await on.erased();
  await on.storeAll('tenant', 'a');
  await on.order();
  expect(await on.stepsOf().step()).toBe('idle');
  expect(on.published).toHaveLength(1);
});
