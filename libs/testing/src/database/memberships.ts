import type { ClientBase, Pool } from 'pg';

const live = (level: string, id: string) => `
  SELECT concat_ws('/', o.api_key, o.organization_id, '${level}', ${id}, user_id) AS row
  FROM users.${level}_members m JOIN users.users u USING (organization, user_id) JOIN users.organizations o ON o.id = m.organization
  WHERE m.added > m.removed AND m.added > u.left_version`;

const rows = async (sql: ClientBase | Pool, query: string) =>
  (await sql.query<{ row: string }>(`${query} ORDER BY 1`)).rows.map(({ row }) => row);

/** The live memberships in the users service, as sorted texts. */
export const sourceMemberships = (sql: ClientBase | Pool): Promise<string[]> =>
  rows(sql, [live('organization', `''`), live('folder', 'folder_id'), live('document', 'document_id')].join(' UNION ALL '));

/** The live memberships in the copy of notifications, as {@link sourceMemberships}. */
export const copiedMemberships = (sql: ClientBase | Pool): Promise<string[]> =>
  rows(
    sql,
    `SELECT concat_ws('/', o.api_key, o.organization_id, level, m.id, user_id) AS row
     FROM notifications.members m JOIN notifications.organizations o ON o.id = m.organization
     LEFT JOIN notifications.departures d USING (organization, user_id)
     WHERE m.added > m.removed AND m.added > coalesce(d.version, -1)`,
  );
