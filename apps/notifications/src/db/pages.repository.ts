import { Injectable } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { queryPrepared, type PreparedStatement } from '@app/postgres/connections/query-prepared';
import { isShown, MOST_LOOKED_AT, ofEachDocument, ofOrganization, visibleTo } from './visibility.sql';

/** Most bytes of content in a page, which has at least one notification. Limits both the read and the reply. */
export const PAGE_BYTES = 4 * 1024 * 1024;

export interface PageFilter {
  apiKey: string;
  organizationId: string;
  documentId?: string;
  locationId?: string;
  userId?: string;
  ids?: readonly string[];
}

export interface PageWindow {
  newestFirst: boolean;
  size: number;
  /** The last notification of the previous page. */
  after?: { timestamp: number; notificationId: string };
}

export interface StoredNotification {
  id: string;
  timestamp: number;
  documentId: string;
  locationId: string | null;
  /** JSON text. Parsed as it arrives, a page of named users would occupy the event loop for up to 100 ms. */
  content: string;
}

/** A row of a statement for a page. A page without notifications is one row whose id is null. */
export interface PageRow {
  id: string | null;
  timestamp: string;
  document_id: string;
  location_id: string | null;
  content: string;
  /** Notifications of the page, and of one more when there are more. */
  found?: number;
  /** Where the page ended early. */
  looked_to: PageWindow['after'] | null;
}

export const storedOf = (row: PageRow): StoredNotification => ({
  id: row.id as string,
  timestamp: Number(row.timestamp),
  documentId: row.document_id,
  locationId: row.location_id,
  content: row.content,
});

/** The position after a notification. */
export const positionOf = ({ id, timestamp }: StoredNotification) => ({ timestamp, notificationId: id });

/** The position at which the next page begins; undefined when there are no more notifications. */
export function nextOf(
  { found = 0, looked_to: lookedTo }: PageRow,
  notifications: readonly StoredNotification[],
): PageWindow['after'] {
  const last = notifications.at(-1);
  return found > notifications.length && last ? positionOf(last) : (lookedTo ?? undefined);
}

/** Reads pages by keyset: the cost of a page depends on its size, not on the number of stored notifications. */
@Injectable()
export class PagesRepository {
  constructor(private readonly dataSource: DataSource) {}

  /**
   * @param lookAt most notifications to all, and documents of the user, that it looks at; other numbers than the default are for tests
   * @returns `next` where the next page begins, unless this one is cut after it was read; absent: there are no more
   */
  async find(
    filter: PageFilter,
    window: PageWindow,
    lookAt = MOST_LOOKED_AT,
  ): Promise<{ notifications: StoredNotification[]; next?: PageWindow['after'] }> {
    const { values, ...statement } = pageQuery(filter, window, lookAt);
    const rows = await queryPrepared<PageRow>(this.dataSource, statement, values);
    const found = rows.filter(({ id }) => id !== null).slice(0, window.size);
    const notifications = found.map(storedOf);
    return { notifications, next: nextOf(rows[0], notifications) };
  }
}

/**
 * The statement for one set of filters. It consists of constant pieces; every value is a parameter. Prepared, because planning takes longer than
 * running: about thirty statements for each connection. Exported for the test of the plans.
 */
export function pageQuery(
  filter: PageFilter,
  window: PageWindow,
  lookAt = MOST_LOOKED_AT,
): PreparedStatement & { values: unknown[] } {
  const values: unknown[] = [];
  const use = (value: unknown): string => `$${values.push(value)}`;
  const direction = window.newestFirst ? 'DESC' : 'ASC';
  const limit = use(window.size + 1);
  const organization = `(SELECT o.id FROM organizations o
    WHERE o.api_key = ${use(filter.apiKey)} AND o.organization_id = ${use(filter.organizationId)})`;
  const document = filter.documentId === undefined ? undefined : use(filter.documentId);
  const location = filter.locationId === undefined ? undefined : use(filter.locationId);
  const user = filter.userId === undefined ? undefined : use(filter.userId);
  const position = window.after && `(${use(window.after.timestamp)}, ${use(window.after.notificationId)})`;

  const behind = (id: string) => (position ? `AND (t."timestamp", t.${id}) ${window.newestFirst ? '<' : '>'} ${position}` : '');
  const keys = (table: string, id: string, conditions: string, most = limit, part = behind(id), more = '') => `
    SELECT t."timestamp", t.${id} AS id ${more} FROM ${table} t
    WHERE t.organization = ${organization} ${conditions}
      ${document ? `AND t.document_id = ${document}` : ''}
      ${location ? `AND t.location_id = ${location}` : ''}
      ${part}
    ORDER BY t."timestamp" ${direction}, t.${id} ${direction} LIMIT ${most}`;
  const end = window.newestFirst ? '-1' : '9223372036854775807';
  const isFiltered = document !== undefined || location !== undefined;
  const inDocuments = ofEachDocument(limit, direction, end, isFiltered, (most, part) =>
    keys('notifications', 'id', 'AND t.notify_all AND t.document_id = v.document_id', most, part),
  );

  const inOrganization = ofOrganization(
    limit,
    direction,
    [organization, user ?? ''],
    document,
    lookAt,
    (conditions, most, more) => keys('notifications', 'id', `AND t.notify_all ${conditions}`, most, undefined, more),
  );

  let page: string;
  if (filter.ids) {
    // OFFSET 0 keeps the document filter out of the lookup: the by-document index would read all notifications of the document.
    const wanted = `(SELECT n.* FROM (SELECT DISTINCT unnest(${use(filter.ids)}::text[]) AS id) given CROSS JOIN LATERAL (
      SELECT * FROM notifications n WHERE n.organization = ${organization} AND n.id = given.id OFFSET 0) n)`;
    page = keys(wanted, 'id', user ? `AND ${isShown('t', 't.organization', user)}` : '');
  } else if (!user) page = keys('notifications', 'id', '');
  else {
    // Each part is one index range; the last part is one range for each document. UNION removes notifications found in two ways.
    page = `SELECT * FROM (
        (${keys('recipients', 'notification_id', `AND t.user_id = ${user}`)})
        UNION (${inOrganization.rows})
        UNION (${inDocuments.rows})
      ) every ${inOrganization.upTo} ORDER BY 1 ${direction}, 2 ${direction} LIMIT ${limit}`;
  }
  const ofUser = user !== undefined && !filter.ids;

  // The inner LIMIT 1 keeps the planner from joining the page with all notifications of the organization at once.
  const text = `
    WITH ${user ? `${visibleTo(user, organization, document, lookAt)},` : ''} ${ofUser ? `${inOrganization.ctes} ${inDocuments.ctes}` : ''}
    page AS MATERIALIZED (${page}), sized AS (
      SELECT n.*, sum(n.size) OVER (ORDER BY n."timestamp" ${direction}, n.id ${direction}) - n.size AS bytes_before
      FROM page CROSS JOIN LATERAL (
        SELECT * FROM notifications t WHERE t.organization = ${organization} AND t.id = page.id LIMIT 1
      ) n
    )
    SELECT id, "timestamp", document_id, location_id, content::text, found, looked_to
    FROM (SELECT (SELECT count(*)::int FROM page) AS found, ${ofUser ? inOrganization.lookedTo : 'NULL::json'} AS looked_to) looked
    LEFT JOIN sized ON bytes_before < ${PAGE_BYTES}
    ORDER BY "timestamp" ${direction}, id ${direction}`;
  const given = { document, location, user, ids: filter.ids, after: position };
  const shape = Object.entries(given).flatMap(([name, value]) => (value === undefined ? [] : [name]));
  return { name: ['page', direction, ...shape, ...(lookAt === MOST_LOOKED_AT ? [] : [lookAt])].join(' '), text, values };
}
