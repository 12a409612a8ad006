// Mutants of the copy of memberships.
const MEMBERS = 'apps/notifications/src/db/members.repository.ts';
const MEMBERS_SQL = 'apps/notifications/src/db/members.sql.ts';
const COPY = ['apps/notifications/src/db/members.property.int-spec.ts', 'is that of the source'];

/** @type {import('./mutants.mjs').Mutant[]} */
export const COPY_MUTANTS = [
  {
    name: 'a copied addition that an older one replaces',
    edits: [
      [
        MEMBERS_SQL,
        'DO UPDATE SET added = excluded.added WHERE m.added < excluded.added`,\n};',
        'DO UPDATE SET added = excluded.added`,\n};',
      ],
    ],
    test: COPY,
  },
  {
    name: 'a wrong copied membership that is deleted',
    edits: [
      [
        MEMBERS,
        `INSERT INTO members AS m (organization, user_id, level, id, added, removed)
         SELECT o.id, $3, w.level, w.id, w.added, w.added
         FROM organization o, unnest($7::text[], $8::text[], $9::bigint[]) AS w(level, id, added)
         WHERE EXISTS (SELECT FROM members k WHERE k.organization = o.id AND k.user_id = $3 AND k.level = w.level AND k.id = w.id AND k.added = w.added OFFSET 0)
         ORDER BY w.level COLLATE "C", w.id COLLATE "C"
         ON CONFLICT (organization, user_id, level, id) DO UPDATE SET removed = excluded.removed
           WHERE m.added = excluded.added AND m.removed < excluded.removed`,
        `DELETE FROM members m USING organization o, unnest($7::text[], $8::text[], $9::bigint[]) AS w(level, id, added)
         WHERE m.organization = o.id AND m.user_id = $3 AND m.level = w.level AND m.id = w.id AND w.added IS NOT NULL`,
      ],
    ],
    test: COPY,
  },
];
