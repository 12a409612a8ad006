import * as fc from 'fast-check';
import type { DataSource } from 'typeorm';
import { InsertNotificationsRepository, type NewNotification } from './insert-notifications.repository';
import { MembersRepository } from './members.repository';
import { PagesRepository, type PageFilter, type PageWindow } from './pages.repository';
import { aNotification, COMBINATIONS, testDatabase } from '../../test/notifications';

describe(PagesRepository.name, () => {
  const database = testDatabase();
  let dataSource: DataSource;
  let pages: PagesRepository;
  let inserts: InsertNotificationsRepository;
  const all: NewNotification[] = [];
  const timestamps = new Map<string, number>();

  const choose = <T>(list: readonly T[], seed: number): T => list[seed % list.length];
  const identity = ({ apiKey, organizationId, id }: NewNotification) => JSON.stringify([apiKey, organizationId, id]);

  beforeAll(async () => {
    [dataSource] = database.dataSources as [DataSource];
    pages = new PagesRepository(dataSource);
    inserts = new InsertNotificationsRepository(dataSource);
    // Equal ids in two tenants and two organizations, in batches, so that many share a timestamp.
    for (let batch = 0; batch < 10; batch++) {
      const notifications = Array.from({ length: 40 }, (_, index) => {
        const number = batch * 40 + index;
        return aNotification({
          apiKey: choose(['tenant', 'other tenant'], number),
          organizationId: choose(['org', 'other org'], number >> 1),
          id: `n${String((number * 37) % 100).padStart(3, '0')}-${batch}`,
          documentId: choose(['doc1', 'doc2', 'doc3'], number >> 2),
          locationId: choose([undefined, 'loc1', 'loc2'], (number * 7) >> 3),
          notifyAll: number % 5 === 0,
          to: [[], ['u1'], ['u2'], ['u1', 'u2'], ['u3']][(number * 3) % 5],
        });
      }).filter((one, index, list) => list.findIndex((other) => identity(other) === identity(one)) === index);
      await inserts.insert(notifications);
      all.push(...notifications);
    }
    const rows = await dataSource.query<{ api_key: string; organization_id: string; id: string; timestamp: string }[]>(
      'SELECT o.api_key, o.organization_id, n.id, n.timestamp FROM notifications n JOIN organizations o ON o.id = n.organization',
    );
    for (const row of rows) timestamps.set(JSON.stringify([row.api_key, row.organization_id, row.id]), Number(row.timestamp));
    expect(timestamps.size).toBe(all.length);
    const members = new MembersRepository(dataSource);
    for (const apiKey of ['tenant', 'other tenant']) {
      for (const organizationId of ['org', 'other org']) {
        const add = (userId: string, level: 'organization' | 'folder' | 'document', id = '', version = 3) =>
          members.add(apiKey, organizationId, { level, id }, [{ userId, version }]);
        await add('u1', 'organization');
        await add('u2', 'document', 'doc1');
        await add('u2', 'folder', 'secret');
        await add('u3', 'folder', 'open');
        // Ended: removed, and left before the last one.
        await add('u3', 'document', 'doc1');
        await members.remove(apiKey, organizationId, { level: 'document', id: 'doc1' }, [{ userId: 'u3', version: 4 }]);
        await add('u4', 'organization');
        await add('u4', 'folder', 'open');
        await members.leave(apiKey, organizationId, [{ userId: 'u4', version: 4 }]);
        await add('u4', 'document', 'doc3', 5);
        await add('u5', 'organization');
        await add('u5', 'folder', 'secret');
        await add('u5', 'folder', 'open');
        const document = (documentId: string, access: string, folderId?: string) =>
          members.setDocument(apiKey, organizationId, { documentId, access, folderId, version: 2 });
        await document('doc2', 'organizationPrivate', 'open');
        await document('doc3', 'restricted', 'secret');
        // Older than the stored version: without effect.
        await members.setDocument(apiKey, organizationId, { documentId: 'doc3', access: 'public', version: 1 });
        if (apiKey === 'other tenant') await document('doc1', 'public');
      }
    }
  });

  const canSee = (userId: string, { apiKey, documentId }: NewNotification): boolean =>
    (apiKey === 'other tenant' && documentId === 'doc1') ||
    ({ u1: ['doc1', 'doc2'], u2: ['doc1', 'doc3'], u3: ['doc2'], u4: ['doc3'], u5: ['doc1', 'doc2', 'doc3'] }[userId]?.includes(
      documentId,
    ) ??
      false);

  /** A model of the contract: the notifications that a filter selects, newest first, then by id. */
  function expected(filter: PageFilter): string[] {
    return all
      .filter(
        (one) =>
          one.apiKey === filter.apiKey &&
          one.organizationId === filter.organizationId &&
          (filter.documentId === undefined || one.documentId === filter.documentId) &&
          (filter.locationId === undefined || one.locationId === filter.locationId) &&
          (filter.ids === undefined || filter.ids.includes(one.id)) &&
          (filter.userId === undefined ||
            (one.notifyAll && canSee(filter.userId, one)) ||
            one.content.notifyUsers.some(({ userId }) => userId === filter.userId)),
      )
      .sort((a, b) => (timestamps.get(identity(b)) ?? 0) - (timestamps.get(identity(a)) ?? 0) || (a.id < b.id ? 1 : -1))
      .map(({ id }) => id);
  }

  async function readAll(filter: PageFilter, window: Omit<PageWindow, 'after'>, lookAt?: number): Promise<string[]> {
    const found: string[] = [];
    let after: PageWindow['after'];
    do {
      const { notifications, next } = await pages.find(filter, { ...window, after }, lookAt);
      expect(notifications.length).toBeLessThanOrEqual(window.size);
      found.push(...notifications.map(({ id }) => id));
      after = next;
    } while (after);
    return found;
  }

  it.each(COMBINATIONS.map((combination) => [combination.join(' + '), combination] as const))(
    'selects, orders and pages by %s',
    async (_, combination) => {
      const filters = fc.record({
        apiKey: fc.constantFrom('tenant', 'other tenant'),
        organizationId: fc.constantFrom('org', 'other org', 'unknown'),
        documentId: fc.constantFrom('doc1', 'doc2', 'doc3', 'unknown'),
        locationId: fc.constantFrom('loc1', 'loc2', 'unknown'),
        userId: fc.constantFrom('u1', 'u2', 'u3', 'u4', 'u5', 'unknown'),
        ids: fc.array(fc.constantFrom(...all.map(({ id }) => id), 'unknown'), { maxLength: 200 }),
      });
      // Most notifications to all, and documents, that a page looks at.
      const lookAt = fc.constantFrom(undefined, 1, 2, 7);
      await fc.assert(
        fc.asyncProperty(filters, fc.integer({ min: 1, max: 60 }), lookAt, async (every, size, most) => {
          const filter: PageFilter = { apiKey: every.apiKey, organizationId: every.organizationId };
          for (const key of combination) Object.assign(filter, { [key]: every[key] });
          const newestFirst = await readAll(filter, { newestFirst: true, size }, most);
          expect(newestFirst).toEqual(expected(filter));
          expect((await readAll(filter, { newestFirst: false, size }, most)).reverse()).toEqual(newestFirst);
        }),
        { numRuns: 40 },
      );
    },
  );

  it('reads on in documents that have more than their share of a page', async () => {
    const [{ id }] = await dataSource.query<[{ id: string }]>(
      `INSERT INTO organizations (api_key, organization_id) VALUES ('tenant', 'many documents') RETURNING id`,
    );
    // A few documents have most, some have one, and some none. Most timestamps occur several times.
    await dataSource.query(
      `INSERT INTO notifications (organization, id, "timestamp", document_id, notify_all, size, fingerprint, content)
       SELECT $1, 'n' || n * 7919 % 1000, n / 3 + n * 37 % 50, 'd' || floor(40 * power((n * 613 % 1000) / 1000.0, 6)), n % 4 > 0, 2, '\\x00', '{}'
       FROM generate_series(1, 600) n`,
      [id],
    );
    await dataSource.query(
      `INSERT INTO members SELECT $1, 'reader', 'document', 'd' || n, 2 FROM generate_series(0, 60) n WHERE n <> 1`,
      [id],
    );
    const seen = await dataSource.query<{ id: string }[]>(
      `SELECT id FROM notifications WHERE organization = $1 AND notify_all AND document_id <> 'd1' ORDER BY "timestamp" DESC, id DESC`,
      [id],
    );
    expect(seen.length).toBeGreaterThan(300);
    const filter = { apiKey: 'tenant', organizationId: 'many documents', userId: 'reader' };
    for (const size of [1, 2, 7, 59, 60, 61, 150, 400]) {
      const newestFirst = await readAll(filter, { newestFirst: true, size });
      expect(newestFirst).toEqual(seen.map((one) => one.id));
      expect((await readAll(filter, { newestFirst: false, size })).reverse()).toEqual(newestFirst);
    }
  });

  it('finds notifications in every combination', () => {
    const one = all.find(
      ({ apiKey, locationId, content }) => apiKey === 'tenant' && locationId && content.notifyUsers.length > 0,
    );
    const every = {
      documentId: one?.documentId,
      locationId: one?.locationId,
      userId: one?.content.notifyUsers[0]?.userId,
      ids: [one?.id ?? ''],
    };
    for (const combination of COMBINATIONS) {
      const filter: PageFilter = { apiKey: 'tenant', organizationId: one?.organizationId ?? '' };
      for (const key of combination) Object.assign(filter, { [key]: every[key as keyof typeof every] });
      expect(expected(filter)).toContain(one?.id);
    }
  });

  it('ends a page at 4 MiB of content, and continues on the next page', async () => {
    const big = (id: string) => {
      const notification = aNotification({ id, organizationId: 'big' });
      notification.content.displayBodyMessage = 'x'.repeat(900_000);
      return notification;
    };
    for (let index = 0; index < 6; index++) await inserts.insert([big(`b${index}`)]);
    const filter = { apiKey: 'tenant', organizationId: 'big', documentId: 'doc' };
    const first = await pages.find(filter, { newestFirst: true, size: 1000 });
    expect(first.next).toBeDefined();
    expect(first.notifications.length).toBeGreaterThan(0);
    expect(first.notifications.length).toBeLessThan(6);
    expect(await readAll(filter, { newestFirst: true, size: 1000 })).toHaveLength(6);
  });
});
