import { Client } from 'pg';
import type { DataSource } from 'typeorm';
import { planOf, touchedBy } from '@app/testing/database/plan';
import { aNotification, connectTestDatabase } from '../../test/notifications';
import { InsertNotificationsRepository, type NewNotification } from './insert-notifications.repository';
import { INSERT, INSERT_KNOWN, INSERT_NONE } from './insert-notifications.sql';

describe(InsertNotificationsRepository.name, () => {
  let database: Awaited<ReturnType<typeof connectTestDatabase>>;
  let dataSource: DataSource;
  let repository: InsertNotificationsRepository;

  beforeEach(async () => {
    database = await connectTestDatabase();
    [dataSource] = database.dataSources as [DataSource];
    repository = new InsertNotificationsRepository(dataSource);
  });
  afterEach(() => database.close());

  /** Inserts, and returns the indexes of what was stored with the name of the statement. */
  async function insert(...batch: NewNotification[]): Promise<{ stored: number[]; by: string | undefined }> {
    const query = jest.spyOn(Client.prototype, 'query');
    try {
      const inserted = await repository.insert(batch);
      const names = query.mock.calls.flatMap(([statement]) => (statement as unknown as { name?: string }).name ?? []);
      expect(names).toHaveLength(1);
      return { stored: [...inserted.keys()].sort(), by: names[0] };
    } finally {
      query.mockRestore();
    }
  }
  const withKey = (id: string) => aNotification({ id, idempotency: { key: id, fingerprint: Buffer.from(id) } });
  const rows = (table: string, columns = '*') => dataSource.query<unknown[]>(`SELECT ${columns} FROM ${table} ORDER BY 1, 2`);

  it('takes the short statement when every document was stored before, and nothing has an Idempotency-Key', async () => {
    expect(await insert(aNotification({ id: '1' }))).toEqual({ stored: [0], by: INSERT.name });
    expect(await insert(aNotification({ id: '2' }))).toEqual({ stored: [0], by: INSERT_KNOWN.name });
    expect(await insert(aNotification({ id: '3' }), aNotification({ id: '4', documentId: 'other' }))).toEqual({
      stored: [0, 1],
      by: INSERT.name,
    });
    expect(await insert(aNotification({ id: '5' }), aNotification({ id: '6', documentId: 'other' }))).toEqual({
      stored: [0, 1],
      by: INSERT_KNOWN.name,
    });
    expect(await insert(aNotification({ id: '7' }), withKey('8'))).toEqual({ stored: [0, 1], by: INSERT.name });
    expect((await insert(aNotification({ id: '9', apiKey: 'other' }))).by).toBe(INSERT.name);
    expect((await insert(aNotification({ id: '9', organizationId: 'other' }))).by).toBe(INSERT.name);
  });

  it('stores the same rows with either statement', async () => {
    const notification = (id: string) => aNotification({ id, locationId: 'l', notifyAll: true, to: ['a', 'b'] });
    await insert(notification('long'));
    await insert(notification('short'));
    const [long, short] = (await rows('notifications')) as Record<string, unknown>[];
    expect({ ...long, id: '', timestamp: '', fingerprint: '' }).toEqual({ ...short, id: '', timestamp: '', fingerprint: '' });
    const all = [
      { document_id: 'doc', location_id: 'l', notification_id: 'long', user_id: 'a' },
      { document_id: 'doc', location_id: 'l', notification_id: 'long', user_id: 'b' },
    ];
    const recipients = await dataSource.query<unknown[]>(
      'SELECT document_id, location_id, notification_id, user_id FROM recipients ORDER BY notification_id, user_id',
    );
    expect(recipients).toEqual([...all, ...all.map((row) => ({ ...row, notification_id: 'short' }))]);
    expect(await rows('outbox', 'notification_id, seq')).toMatchObject([
      { notification_id: 'long' },
      { notification_id: 'short' },
    ]);
  });

  it('skips in the short statement what it skips in the long one', async () => {
    await insert(aNotification({ id: '1' }));
    const late = aNotification({ id: 'late', deadline: Date.now() - 1000 });
    expect(await insert(aNotification({ id: '1' }), aNotification({ id: '2' }), late)).toEqual({
      stored: [1],
      by: INSERT_KNOWN.name,
    });
    expect(await rows('outbox')).toHaveLength(2);
  });

  it('waits for no transaction that changes a notification with one of its ids', async () => {
    await insert(aNotification());
    const changing = dataSource.createQueryRunner();
    try {
      await changing.startTransaction();
      await changing.query('UPDATE notifications SET size = size');
      const known = aNotification({ id: 'known' });
      expect(await insert(aNotification(), known)).toEqual({ stored: [1], by: INSERT_KNOWN.name });
      const ofNewDocument = aNotification({ id: 'new', documentId: 'other' });
      expect(await insert(aNotification(), ofNewDocument)).toEqual({ stored: [1], by: INSERT.name });
      await changing.rollbackTransaction();
    } finally {
      await changing.release();
    }
  });

  it('remembers only what was stored', async () => {
    await insert(aNotification({ id: 'late', deadline: Date.now() - 1000 }));
    expect((await insert(aNotification())).by).toBe(INSERT.name);
    await expect(repository.insert([aNotification({ id: 'x', documentId: 'new', to: ['nul\0'] })])).rejects.toThrow();
    expect((await insert(aNotification({ id: 'y', documentId: 'new' }))).by).toBe(INSERT.name);
  });

  it('remembers 50,000 documents, those that were stored last', async () => {
    const numbered = (number: number, id = number) => aNotification({ id: `n${id}`, documentId: `d${number}`, to: [] });
    const documents = Array.from({ length: 50_001 }, (_, number) => numbered(number));
    for (let from = 0; from < documents.length; from += 1000) await repository.insert(documents.slice(from, from + 1000));
    expect((await insert(numbered(1, 60_001))).by).toBe(INSERT_KNOWN.name);
    expect((await insert(numbered(0, 60_000))).by).toBe(INSERT.name);
  });

  it.each(['documents', 'documents; DELETE FROM organizations'])('stores anew what was known and is gone: %s', async (tables) => {
    await insert(aNotification({ id: '1' }));
    await dataSource.query(`DELETE FROM ${tables}`);
    expect(await insert(aNotification({ id: '2' }))).toEqual({ stored: [], by: INSERT_KNOWN.name });
    expect(await repository.findStored([aNotification({ id: '2' })])).toEqual([{}]);
    expect(await insert(aNotification({ id: '2' }))).toEqual({ stored: [0], by: INSERT.name });
    expect(await rows('documents')).toHaveLength(1);
  });

  it('takes the short statement again after a repetition', async () => {
    const first = aNotification({ id: '1' });
    await insert(first);
    expect((await insert(first)).stored).toEqual([]);
    expect(await repository.findStored([first])).toEqual([{ fingerprint: first.fingerprint }]);
    expect(await insert(aNotification({ id: '2' }))).toEqual({ stored: [0], by: INSERT_KNOWN.name });
  });

  it('does nothing without notifications, so that each connection can plan it', async () => {
    await expect(dataSource.query(INSERT_NONE.text, INSERT_NONE.values)).resolves.toEqual([]);
    expect(await rows('notifications')).toEqual([]);
  });

  it('looks up only what its notifications name, with a plan from when the tables were empty', async () => {
    const runner = dataSource.createQueryRunner();
    try {
      await runner.query('SET statement_timeout = 0');
      await runner.query(`PREPARE known AS ${INSERT_KNOWN.text}`);
      const execute = (from: number) => {
        const ids = Array.from({ length: 100 }, (_, index) => from + index);
        const array = (value: (id: number) => string | number) => `ARRAY[${ids.map((id) => `'${value(id)}'`).join()}]`;
        const position = `${array((id) => id - from)}::int[]`;
        const text = (value: (id: number) => string | number) => `${array(value)}::text[]`;
        const nothing = 'array_fill(NULL::text, ARRAY[100])';
        return planOf(
          runner,
          `EXECUTE known (${position}, ${text((id) => `u${id}`)}, ${position}, ${text(() => 'tenant')}, ${text((id) => `o${id % 50}`)},
             ${text((id) => id)}, ${text((id) => `d${id % 50}`)}, ${nothing}, array_fill(true, ARRAY[100]), array_fill('x'::bytea, ARRAY[100]),
             ${text(() => '{}')}, ${nothing}::bigint[], ${text((id) => id)}, ${nothing})`,
        );
      };
      await execute(0);
      await runner.query(
        `INSERT INTO organizations (api_key, organization_id) SELECT 'tenant', 'o' || n FROM generate_series(0, 20000) n`,
      );
      await runner.query(
        `INSERT INTO documents SELECT id, 'd' || n FROM organizations, generate_series(0, 50) n WHERE id < 1000`,
      );
      await runner.query(
        `INSERT INTO notifications (organization, id, "timestamp", document_id, notify_all, size, fingerprint, content)
         SELECT id, 'other ' || n, n, 'd', false, 2, 'x', '{}' FROM organizations, generate_series(0, 20) n WHERE id < 1000`,
      );
      const nodes = await execute(1000);
      expect(await dataSource.query(`SELECT FROM notifications WHERE id NOT LIKE 'other%'`)).toHaveLength(100);
      expect(Math.max(...nodes.map(touchedBy))).toBe(100);
    } finally {
      await runner.release();
    }
  });
});
