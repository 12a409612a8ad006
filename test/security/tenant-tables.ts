import type { Pool } from 'pg';
import { markOf } from './tenant-door';
import type { TenantModel } from './tenant-model';
import type { Tenant } from './watched-system';

/** Checks that the tables of both services have exactly the rows of the model for a tenant, in the organizations with a prefix. */
export async function compareTables(sql: Pool, apiKey: string, prefix: string, model: TenantModel): Promise<void> {
  const list = async (schema: 'users' | 'notifications', table: string, row: string, condition = 'true') => {
    const { rows } = await sql.query<{ row: string }>(
      `SELECT concat_ws('/', ${row}) AS row FROM ${schema}.${table} t JOIN ${schema}.organizations o ON o.id = t.organization
       WHERE o.api_key = $1 AND o.organization_id LIKE $2 AND ${condition}`,
      [apiKey, `${prefix}%`],
    );
    return rows.map(({ row: one }) => one).sort();
  };
  const text = (...parts: (string | number | undefined)[]) => parts.filter((part) => part !== undefined).join('/');
  const { notifications, taken, rows, names, documents, readings, marks } = model;

  const place = `o.organization_id, t.id, t.document_id, t.location_id, t.notify_all,
    t.content ->> 'displayHeadlineMessageTemplate', t.content -> 'actionUser' ->> 'userId'`;
  expect(await list('notifications', 'notifications', place, `t.document_id <> ''`)).toEqual(
    notifications
      .map((one) =>
        text(
          ...[one.organizationId, one.notificationId, one.documentId, one.locationId, one.toAll ? 't' : 'f'],
          ...[one.displayHeadlineMessageTemplate, one.actionUser.userId],
        ),
      )
      .sort(),
  );
  const shown = new Set(notifications.map((one) => text(one.organizationId, one.notificationId)));
  expect(await list('notifications', 'notifications', 'o.organization_id, t.id', `t.document_id = ''`)).toEqual(
    [...taken.keys()].filter((id) => !shown.has(id)).sort(),
  );
  expect(await list('notifications', 'documents', 'o.organization_id, t.document_id')).toEqual(
    [...new Set([...taken.values()].map((one) => text(one.organizationId, one.documentId)))].sort(),
  );
  expect(await list('notifications', 'recipients', 'o.organization_id, t.notification_id, t.user_id')).toEqual(
    notifications.flatMap((one) => one.notifyUsers.map((userId) => text(one.organizationId, one.notificationId, userId))).sort(),
  );
  expect(await list('notifications', 'readings', 'o.organization_id, t.user_id, t.notification_id, t.read')).toEqual(
    [...readings].flatMap(([user, each]) => [...each].map(([id, read]) => text(user, id, read ? 't' : 'f'))).sort(),
  );
  const unsure = [...marks].filter(([, { isKept }]) => !isKept).map(([user, { asked }]) => text(user, asked));
  const kept = await list('notifications', 'read_marks', 'o.organization_id, t.user_id, t.asked');
  expect(kept.filter((mark) => !unsure.includes(mark))).toEqual(
    [...marks]
      .filter(([, { isKept }]) => isKept)
      .map(([user, { asked }]) => text(user, asked))
      .sort(),
  );

  expect(await list('users', 'users', 'o.organization_id, t.user_id, t.name')).toEqual(
    [...names].map(([user, name]) => text(user, name)).sort(),
  );
  expect(await list('users', 'documents', 'o.organization_id, t.document_id, t.access, t.folder_id', 't.version > 0')).toEqual(
    [...documents].map(([document, { access, folderId }]) => text(document, access, folderId)).sort(),
  );
  const live = `t.added > t.removed AND t.added > (SELECT u.left_version FROM users.users u
    WHERE u.organization = t.organization AND u.user_id = t.user_id)`;
  const organizations = await sql.query<{ row: string }>(
    `SELECT 'organization/' || organization_id AS row FROM users.organizations WHERE api_key = $1 AND organization_id LIKE $2`,
    [apiKey, `${prefix}%`],
  );
  const found = await Promise.all([
    list('users', 'documents', `'document', o.organization_id, t.document_id`),
    list('users', 'folders', `'folder', o.organization_id, t.folder_id`),
    list('users', 'organization_members', `'member of organization', o.organization_id, t.user_id`, live),
    list('users', 'document_members', `'member of document', o.organization_id, t.document_id, t.user_id`, live),
    list('users', 'folder_members', `'member of folder', o.organization_id, t.folder_id, t.user_id`, live),
  ]);
  expect([...organizations.rows.map(({ row }) => row), ...found.flat()].sort()).toEqual([...rows].sort());
}

/** A check without a model: no row with the mark of a tenant belongs to another key, and every row has what it belongs to. */
export async function expectNoRowsOfOthers(sql: Pool, tenants: readonly Tenant[]): Promise<void> {
  const { rows } = await sql.query(
    `WITH tenants AS (SELECT * FROM unnest($1::text[], $2::text[]) AS t(api_key, mark)), marked AS (
       SELECT o.api_key, n.content::text AS text
       FROM notifications.notifications n JOIN notifications.organizations o ON o.id = n.organization
       UNION ALL
       SELECT o.api_key, u.name FROM users.users u JOIN users.organizations o ON o.id = u.organization
     )
     SELECT m.* FROM marked m JOIN tenants t ON position(t.mark IN m.text) > 0 AND t.api_key <> m.api_key
     UNION ALL
     SELECT k.api_key, 'an Idempotency-Key of a notification that is not there: ' || k.key
     FROM notifications.idempotency_keys k WHERE NOT EXISTS (
       SELECT FROM notifications.notifications n JOIN notifications.organizations o ON o.id = n.organization
       WHERE n.id = k.notification_id AND o.api_key = k.api_key)
     UNION ALL
     SELECT t.api_key, 'a recipient without its notification: ' || r.notification_id
     FROM notifications.recipients r JOIN notifications.organizations t ON t.id = r.organization WHERE NOT EXISTS (
       SELECT FROM notifications.notifications n
       WHERE n.organization = r.organization AND n.id = r.notification_id AND n."timestamp" = r."timestamp"
         AND n.document_id = r.document_id AND n.location_id IS NOT DISTINCT FROM r.location_id)
     UNION ALL
     SELECT t.api_key, 'a read state without its notification: ' || r.notification_id
     FROM notifications.readings r JOIN notifications.organizations t ON t.id = r.organization WHERE NOT EXISTS (
       SELECT FROM notifications.notifications n
       WHERE n.organization = r.organization AND n.id = r.notification_id AND n."timestamp" = r."timestamp" AND n.document_id <> '')`,
    [tenants.map(({ apiKey }) => apiKey), tenants.map((_, index) => markOf(index))],
  );
  expect(rows).toEqual([]);
}
