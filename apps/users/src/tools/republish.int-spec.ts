import { ALL_EVENTS } from '@app/contracts/all-events';
import type { DocumentChangedData, UserAddedData } from '@app/contracts/events.users';
import { validateBody } from '@app/contracts/validate';
import { eventually } from '@app/testing/eventually';
import { numbered, users, usersOnDatabase } from '../../test/users';
import { RepublishRepository } from '../db/republish.repository';
import { republish } from './republish';

describe('republish', () => {
  const on = usersOnDatabase();
  let lines: string[];
  beforeEach(async () => {
    lines = [];
  });

  const again = (pageSize: number) =>
    republish(new RepublishRepository(on.dataSource), { rate: 1e6, pageSize, print: (line) => lines.push(line) });
  type Data = UserAddedData & DocumentChangedData;
  /** Takes all events from the outbox. */
  const written = async () => {
    const rows = await on.dataSource.query<{ id: string; type: string; api_key: string; data: Data }[]>(
      'WITH taken AS (DELETE FROM outbox RETURNING *) SELECT * FROM taken ORDER BY seq',
    );
    for (const { type, data } of rows) {
      const { data: contract } = ALL_EVENTS.find((event) => event.type === type)!;
      expect(validateBody(contract, data)).toEqual(data);
      expect(data.republished).toBe(true);
    }
    return rows;
  };

  it.each([1, 2, 3, 500])('publishes every membership and every document once, %d rows at a time', async (pageSize) => {
    for (const apiKey of ['one', 'two']) {
      await on.add({ organizationId: 'a', users: numbered(5) }, { apiKey });
      await on.add({ organizationId: 'b', folderId: 'f', users: users('u1', 'u2', 'u3') }, { apiKey });
      await on.add({ organizationId: 'b', folderId: 'g', users: users('u1') }, { apiKey });
      await on.add({ organizationId: 'a', documentId: 'd', users: users('u1', 'u9') }, { apiKey });
      await on.setDocument({ organizationId: 'a', documentId: 'd', folderId: 'f', access: 'restricted' }, { apiKey });
      await on.setDocument({ organizationId: 'a', documentId: 'e' }, { apiKey });
    }
    await on.published();
    const published = on.events.splice(0);

    const { events: count, rows: sent } = await again(pageSize);
    const rows = await written();
    expect(rows).toHaveLength(count);
    expect(rows.map(({ id }) => id)).not.toContain(published[0].id);
    expect(lines).toEqual([
      'documents: 4',
      'organization members: 10',
      'folder members: 8',
      'document members: 4',
      'departures: 0',
    ]);

    expect(Object.entries(sent).map(([kind, number]) => `${kind}: ${number}`)).toEqual(lines);

    const flat = (events: { type: string; apiKey: string; data: Data }[]) =>
      events
        .flatMap(({ type, apiKey, data: { republished: _, users: added, ...data } }) =>
          added ? added.map((user) => ({ type, apiKey, ...data, ...user })) : [{ type, apiKey, ...data }],
        )
        .map((one) => JSON.stringify(Object.entries(one).sort()))
        .sort();
    const first = published
      .filter(({ type }) => type !== 'organization.created.v1')
      .map(({ type, apiKey, data }) => ({ type, apiKey, data: JSON.parse(data) as Data }));
    expect(flat(rows.map(({ type, api_key, data }) => ({ type, apiKey: api_key, data })))).toEqual(flat(first));
  });

  it('publishes every end of a membership, and no membership that has ended', async () => {
    await on.add({ organizationId: 'a', documentId: 'd', users: users('removed', 'again', 'left', 'stays') });
    await on.add({ organizationId: 'a', folderId: 'f', users: users('left') });
    await on.delete({ organizationId: 'a', documentId: 'd', userIds: ['removed', 'again'] });
    await on.delete({ organizationId: 'a', userIds: ['left'] });
    await on.add({ organizationId: 'a', documentId: 'd', users: users('again') });
    await on.add({ organizationId: 'a', users: users('left') });
    await on.published();
    await again(2);
    const found = (await written()).flatMap(({ type, data }) =>
      data.users.map(({ userId }) => `${type} ${userId} ${data.documentId ?? data.folderId ?? ''}`),
    );
    expect(found.sort()).toEqual([
      'user.added.v1 again d',
      'user.added.v1 left ',
      'user.added.v1 stays d',
      'user.removed.v1 left ',
      'user.removed.v1 removed d',
    ]);
    expect(lines.at(-1)).toBe('departures: 1');
  });

  it('publishes nothing from empty tables', async () => {
    expect((await again(10)).events).toBe(0);
  });

  it('waits while the outbox has too many events', async () => {
    await on.add({ organizationId: 'a', users: users('u') });
    await on.published();
    await on.dataSource.query(
      `INSERT INTO outbox (type, api_key, organization_id, data) SELECT 'x', 'one', 'a', '{}' FROM generate_series(1, 1000)`,
    );
    const waiting = jest.spyOn(RepublishRepository.prototype, 'waiting');
    const done = again(10);
    await eventually(() => waiting.mock.calls.length > 2);
    expect(await on.values(`SELECT id FROM outbox WHERE type <> 'x'`)).toEqual([]);
    await on.dataSource.query(`DELETE FROM outbox WHERE type = 'x'`);
    expect((await done).events).toBe(1);
    waiting.mockRestore();
    expect(await written()).toHaveLength(1);
  });
});
