import * as fc from 'fast-check';
import type { DataSource } from 'typeorm';
import { FIND_NOTIFICATIONS, soughtIn } from './erasure.sql';
import { testDatabase } from '../../test/notifications';

const database = testDatabase();
let dataSource: DataSource;

beforeAll(() => void ([dataSource] = database.dataSources as [DataSource]));

/** Signs that JSON, SQL or a pattern may read as something else, in short strings, so that ids are often parts of each other. */
const text = fc.string({
  unit: fc.constantFrom(...'aA1 "\\{}[]():,.*+?|^$%_/\u{e9}\u{65e5}\u{1f600}'),
  minLength: 1,
  maxLength: 3,
});
const id = fc.oneof(text, fc.constantFrom('{', '}', ']}', ':', ',', '__proto__', '\\"', 'userId', 'x'.repeat(255)));
const content = (ids: readonly string[]) => {
  const value = fc.oneof(fc.constantFrom(...ids), text, fc.integer(), fc.constant(null));
  return fc.dictionary(text, fc.oneof(value, fc.array(value, { maxLength: 3 }), fc.dictionary(text, value)), { maxKeys: 4 });
};
const programs = fc
  .uniqueArray(id, { minLength: 1, maxLength: 30 })
  .chain((ids) => fc.record({ ids: fc.constant(ids), contents: fc.array(content(ids), { minLength: 1, maxLength: 20 }) }));

it('finds the notifications whose JSON text has one of the ids as a string, however many ids there are', async () => {
  await fc.assert(
    fc.asyncProperty(programs, async ({ ids, contents }) => {
      const stored = contents.map((one, n) => ({ id: `n${100 + n}`, content: JSON.stringify(one) }));
      await dataSource.query('TRUNCATE notifications CASCADE');
      await dataSource.query(
        `INSERT INTO notifications (organization, id, "timestamp", document_id, notify_all, size, fingerprint, content)
         SELECT 1, id, 1, 'd', false, octet_length(content), '\\x00', content::json FROM unnest($1::text[], $2::text[]) AS n(id, content)`,
        [stored.map((one) => one.id), stored.map((one) => one.content)],
      );
      for (const sought of [ids, ids.slice(0, 3)]) {
        const { strings, words } = soughtIn(sought);
        const [{ hits }] = await dataSource.query<[{ hits: { id: string; content: string }[] }]>(FIND_NOTIFICATIONS, [
          ...[1, '', 1000, 1e9, strings, 1, words],
        ]);
        const expected = stored.filter((one) => sought.some((userId) => one.content.includes(JSON.stringify(userId))));
        expect(hits.toSorted((a, b) => (a.id < b.id ? -1 : 1))).toEqual(expected);
      }
    }),
    { numRuns: 300 },
  );
});
