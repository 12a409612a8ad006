// Mutants of memberships that end, read state, deletion and erasure.
const DELETE = 'apps/notifications/src/db/delete-notifications.sql.ts';
const READINGS = 'apps/notifications/src/db/readings.sql.ts';
const RETENTION = 'apps/notifications/src/db/retention.repository.ts';
const INBOX = 'apps/notifications/src/db/inbox.sql.ts';
const REMOVE = 'apps/users/src/db/remove-members.sql.ts';
const RIVALS = 'apps/users/src/commands/add-users/add-users.rivals.int-spec.ts';
const COUNTS = ['apps/notifications/src/db/inbox.property.int-spec.ts', 'what the operations before it mean'];

/** @type {import('./mutants.mjs').Mutant[]} */
export const LIFECYCLE_MUTANTS = [
  {
    name: 'a removal without its event',
    edits: [['apps/users/src/db/remove-members.sql.ts', 'FROM removed HAVING count(*) > 0', 'FROM removed HAVING false']],
    test: ['memberships', 'their copy is right'],
  },
  {
    name: 'an addition without its version',
    edits: [['apps/users/src/db/add-members.sql.ts', "'membership', membership", "'membership', NULL"]],
    test: ['memberships', 'their copy is right'],
  },
  {
    name: 'an addition whose version is drawn before the lock',
    edits: [
      [
        'apps/users/src/db/add-members.sql.ts',
        "SELECT nextval('versions') AS version FROM (SELECT count(*) FROM stored) locked",
        "SELECT early.version FROM (SELECT nextval('versions') AS version OFFSET 0) early, (SELECT count(*) FROM stored) locked",
      ],
    ],
    test: [RIVALS, 'who is removed while the call waits'],
  },
  {
    name: 'a removal whose version is drawn before the lock',
    edits: [
      [REMOVE, "SET removed = nextval('versions') FROM locked u", 'SET removed = u.early FROM locked u'],
      [REMOVE, 'SELECT u.organization, u.user_id, u.left_version\n', 'SELECT u.organization, u.user_id, u.left_version, early\n'],
      [
        REMOVE,
        'FROM tenant JOIN organizations o',
        "FROM (SELECT nextval('versions') AS early OFFSET 0) drawn, tenant JOIN organizations o",
      ],
    ],
    test: [RIVALS, 'who is removed and added again while the call waits'],
  },
  {
    name: 'a republished removal with a later version',
    edits: [['apps/users/src/db/republish.repository.ts', "'version', p.${version}", "'version', p.${version} + 1000000000"]],
    test: ['memberships', 'their copy is right'],
  },
  {
    name: 'all read up to now',
    edits: [[READINGS, 'least(statement_timestamp(), min(xact_start))', 'statement_timestamp()']],
    test: ['read-state', 'marked as read, 200 times'],
  },
  {
    name: 'all read up to 10 s ago',
    edits: [[READINGS, 'least(statement_timestamp(), min(xact_start))', "statement_timestamp() - interval '10 s'"]],
    test: ['read-state', 'lost standby'],
  },
  {
    name: 'a removal that a redelivery repeats',
    edits: [['apps/users/src/commands/answer-key.ts', 'key: messageId }', 'key: `${messageId} ${Math.random()}` }']],
    test: ['redelivery', 'users/delete, then users/add'],
  },
  {
    name: 'a deletion that a redelivery repeats',
    edits: [['apps/notifications/src/db/first-run.sql.ts', 'SET moment = d.moment', 'SET moment = excluded.moment']],
    test: ['redelivery', 'of a document'],
  },
  {
    name: 'a deletion that is answered and not stored',
    edits: [[DELETE, 'AND n.id = ANY (ARRAY(SELECT id FROM locked))\n  ), unpublished', 'AND false\n  ), unpublished']],
    test: ['short', 'SIGKILL of a writer, 1 times, at'],
  },
  {
    name: 'a deletion without its tombstone',
    edits: [
      [
        DELETE,
        `UPDATE notifications n SET document_id = '\${DELETED.documentId}', location_id = NULL, notify_all = false,
      size = \${DELETED.content.length}, content = '\${DELETED.content}', "timestamp" = clock.ms
    FROM clock WHERE`,
        'DELETE FROM notifications n USING clock WHERE',
      ],
    ],
    test: ['deletion', 'wins over repeated adds'],
  },
  {
    name: 'a deletion announced before its addition',
    edits: [[DELETE, 'unpublished.found AS unpublished', 'false AS unpublished']],
    test: ['deletion', 'held between commit and publish'],
  },
  {
    name: 'all read once more by a redelivery',
    edits: [
      [READINGS, 'least($6::bigint, (SELECT moment FROM run),', 'least($6::bigint,'],
      [
        READINGS,
        "coalesce((SELECT moment FROM deletions WHERE api_key = $1::text AND message_id = ${keptId('update', '$10')}), $9::bigint)) AS up_to",
        '$9::bigint) AS up_to',
      ],
    ],
    test: ['redelivery', 'read up to'],
  },
  {
    name: 'all read once more by an earlier moment',
    edits: [[READINGS, '    WHERE m.asked < ${ASKED}\n', '']],
    test: ['apps/notifications/src/db/readings.int-spec.ts', 'when an earlier moment is repeated'],
  },
  {
    name: 'retention by the ctid of a row that an erasure rewrites',
    edits: [
      [
        RETENTION,
        'SELECT ctid::text FROM notifications',
        'SELECT ctid, organization, id, "timestamp", content FROM notifications',
      ],
      [RETENTION, 'SELECT organization, id, "timestamp", content FROM notifications WHERE ctid = ANY ($1::tid[])', '${LOCK_OLD}'],
      [
        RETENTION,
        'DELETE FROM notifications WHERE ctid = ANY ($1::tid[])`',
        'DELETE FROM notifications WHERE ctid = ANY (ARRAY(SELECT ctid FROM old)) RETURNING id`',
      ],
      [
        RETENTION,
        `const locked = await manager.query<{ ctid: string }[]>(LOCK_OLD, [days * DAY_MS, most]);
  if (locked.length > 0) await manager.query(DELETE_LOCKED, [locked.map(({ ctid }) => ctid)]);`,
        'const [locked] = await manager.query<[object[]]>(DELETE_LOCKED, [days * DAY_MS, most]);',
      ],
    ],
    test: ['apps/notifications/src/retention/retention.int-spec.ts', 'or neither, while contents are rewritten'],
  },
  {
    name: 'an erasure that only the process of its call goes on with',
    edits: [['apps/users/src/main.ts', '    erasures.start();\n', '']],
    test: ['erasure', 'goes on in processes of users'],
  },
  {
    name: 'an ordered erasure that only the process of its event goes on with',
    edits: [['apps/notifications/src/main.ts', '    erasures.start();\n', '']],
    test: ['erasure', 'goes on in processes of notifications'],
  },
  {
    name: 'an erasure in all tenants',
    edits: [['apps/notifications/src/db/erasure.sql.ts', 'o.api_key = $1 AND o.organization_id >=', 'o.organization_id >=']],
    test: ['erasure', 'leaves no trace'],
  },
  {
    name: 'an erasure of users in all tenants',
    edits: [['apps/users/src/db/erasure-steps.ts', 'o.api_key = $1 AND ($3', '$1::text IS NOT NULL AND ($3']],
    test: ['apps/users/src/commands/erase-users.int-spec.ts', 'who leave while it goes on'],
  },
  {
    name: 'an erasure that does not see the events of another account',
    edits: [['apps/users/src/db/erasure-steps.ts', 'AND other.usename <> current_user', 'AND false']],
    test: ['apps/users/src/db/erasure-steps.int-spec.ts', 'another account writes events'],
  },
  {
    name: 'an erasure that waits for other databases',
    edits: [
      ['apps/users/src/db/erasure-steps.ts', 'usename = current_user AND datname = current_database()', 'usename = current_user'],
    ],
    test: ['apps/users/src/db/erasure-steps.int-spec.ts', 'another account writes events'],
  },
  {
    name: 'a deletion that looks at every read state of a time',
    edits: [[DELETE, '          ) r LIMIT ${MOST_READINGS}\n', '          ) r\n']],
    test: ['apps/notifications/src/db/lifecycle.plans.int-spec.ts', 'reads little with'],
  },
  {
    name: 'a notification to all and to the user that counts twice',
    edits: [
      [
        INBOX,
        "WHERE ${isOpenToMember(document ?? 't.document_id', ORGANIZATION, USER)} AND NOT ${isRead('t')} AND NOT ${isNamed('t', ORGANIZATION, USER)}",
        "WHERE ${isOpenToMember(document ?? 't.document_id', ORGANIZATION, USER)} AND NOT ${isRead('t')}",
      ],
    ],
    test: COUNTS,
  },
  {
    name: 'a mark that no count compares with',
    edits: [
      [INBOX, 'const ABOVE_MARK = `AND t."timestamp" > ${MARK}`;', "const ABOVE_MARK = '';"],
      ['apps/notifications/src/db/read-state.sql.ts', '${of}."timestamp" <= ${MARK})`', 'false)`'],
    ],
    test: COUNTS,
  },
  {
    name: 'an "unread" that a later mark leaves in force',
    edits: [
      ['apps/notifications/src/db/read-state.sql.ts', 'WHEN r.asked = (SELECT asked FROM who) THEN false END', 'ELSE false END'],
    ],
    test: COUNTS,
  },
  {
    name: 'a deletion of any number of recipients',
    edits: [[DELETE, 'OR recipients <= ${MOST_RECIPIENTS}', 'OR true']],
    test: ['deletion', 'of a document with 100,000 recipients'],
  },
  {
    name: 'an erasure whose steps keep no position',
    edits: [
      [
        'apps/notifications/src/db/erasure-steps.ts',
        'if (position) await manager.query(sql.MOVE, [erasure.id, erasure.stage, ...position]);',
        'if (position) await Promise.resolve();',
      ],
    ],
    test: ['erasure', 'leaves no trace'],
  },
  {
    name: 'a kept answer with the ids of its users',
    edits: [
      [
        'apps/users/src/db/add-members.sql.ts',
        "SELECT coalesce(json_agg(place), '[]') FROM added",
        "SELECT coalesce(json_agg(place::text || kept.user_id), '[]') FROM added",
      ],
    ],
    test: ['erasure', 'leaves no trace'],
  },
  {
    name: 'an inbox of another tenant',
    edits: [
      [
        'apps/notifications/src/db/read-state.sql.ts',
        'WHERE o.api_key = $1::text AND o.organization_id = $2::text OFFSET 0',
        'WHERE $1::text IS NOT NULL AND o.organization_id = $2::text ORDER BY o.id LIMIT 1',
      ],
    ],
    test: ['test/security/isolation.security-spec.ts', 'never see, change or learn'],
  },
  {
    name: 'the end of an erasure without a wait',
    edits: [['apps/notifications/src/db/erasure-steps.ts', 'SETTLE_MS = UNDER_WAY_MS', 'SETTLE_MS = 0']],
    test: ['erasure', 'still publishing when another process'],
  },
];
