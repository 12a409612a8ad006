import type { PreparedStatement } from '@app/postgres/query-prepared';
import { PAGE_BYTES, visibleTo, type PageWindow } from './pages.repository';
import { IS_SHOWN, isNamed, isOpen, isRead, MARK, MEMBER, ORGANIZATION, WHO } from './read-state.sql';

export interface InboxFilter {
  apiKey: string;
  organizationId: string;
  userId: string;
  documentId?: string;
  locationId?: string;
  /** Only notifications that the user has not read. */
  unread?: boolean;
}

/** Bounds of one statement, in rows. */
export interface Budgets {
  /** Greatest exact count. */
  count: number;
  /** Looked through for the count: notifications that name the user, … */
  named: number;
  /** … that are for all members of the organization, … */
  toAll: number;
  /** … that are for all who see one of the user's documents, in each document and together, … */
  inDocument: number;
  inDocuments: number;
  /** … and those that the user has marked as unread. */
  marked: number;
  /** Looked through for a page of unread notifications. */
  page: number;
}

export const BUDGETS: Budgets = {
  count: 100,
  named: 2000,
  toAll: 5000,
  inDocument: 2000,
  inDocuments: 5000,
  marked: 1000,
  page: 2000,
};

const NEWEST_FIRST = 'ORDER BY "timestamp" DESC, id DESC';

/** The last notification that was looked at, when there are more. */
const LOOKED_TO = `(SELECT json_build_object('timestamp', "timestamp", 'notificationId', id) FROM last_looked
  WHERE (SELECT count(*) FROM last_looked) = 2 ${NEWEST_FIRST} LIMIT 1)`;

/**
 * A page and the count of unread notifications in one statement, so that they never disagree. The page has the ranges of notifications/get, the
 * count those above the mark. They are read only as far as the page and the count need them. A window of size 0 is the count alone.
 */
export function inboxQuery(
  filter: InboxFilter,
  window: Omit<PageWindow, 'newestFirst'>,
  budgets = BUDGETS,
): PreparedStatement & { values: unknown[] } {
  const values: unknown[] = [filter.apiKey, filter.organizationId, filter.userId];
  const use = (value: unknown): string => `$${values.push(value)}`;
  const document = filter.documentId === undefined ? undefined : `${use(filter.documentId)}::text`;
  const location = filter.locationId === undefined ? undefined : `${use(filter.locationId)}::text`;
  const unread = filter.unread ?? false;
  const filtered = (of: string) =>
    `${document ? `AND ${of}.document_id = ${document}` : ''} ${location ? `AND ${of}.location_id = ${location}` : ''}`;
  const range = (table: string, id: string, conditions: string, limit: number | string) => `
    SELECT t."timestamp", t.${id} AS id, t.document_id FROM ${table} t
    WHERE t.organization = ${ORGANIZATION} ${conditions} ${filtered('t')}
    ORDER BY t."timestamp" DESC, t.${id} DESC LIMIT ${limit}`;
  const ofUser = 'AND t.user_id = $3::text';
  const ofDocument = 'AND t.notify_all AND t.document_id = v.document_id';
  const ofMembers = `AND t.notify_all AND ${MEMBER}`;
  const aboveMark = `AND t."timestamp" > ${MARK}`;
  const marked = (limit: number | string, conditions = '') => `
    SELECT r."timestamp", r.notification_id AS id FROM readings r
    WHERE r.organization = ${ORGANIZATION} AND r.user_id = $3::text AND NOT r.read AND r.asked = (SELECT asked FROM who)
      AND r."timestamp" <= ${MARK} ${conditions}
    ORDER BY r."timestamp" DESC, r.notification_id DESC LIMIT ${limit}`;
  const found = (of: string) => `CROSS JOIN LATERAL (
    SELECT * FROM notifications x WHERE x.organization = ${ORGANIZATION} AND x.id = ${of}.id LIMIT 1) n`;

  // A document that the organization sees is counted once, with those to all its members.
  const count = `
    named AS MATERIALIZED (${range('recipients', 'notification_id', `${ofUser} ${aboveMark}`, budgets.named + 1)}
    ), to_all AS MATERIALIZED (${range('notifications', 'id', `${ofMembers} ${aboveMark}`, budgets.toAll + 1)}
    ), in_documents AS MATERIALIZED (
      SELECT k.*, k.number > ${budgets.inDocument} AS cut FROM (
        SELECT * FROM visible v WHERE NOT (${MEMBER} AND ${isOpen('v')})
      ) v CROSS JOIN LATERAL (
        SELECT *, row_number() OVER () AS number FROM (${range('notifications', 'id', `${ofDocument} ${aboveMark}`, budgets.inDocument + 1)}) t
      ) k LIMIT ${budgets.inDocuments + 1}
    ), marked AS MATERIALIZED (${marked(budgets.marked + 1)}
    ), unread AS MATERIALIZED (
      SELECT FROM (
        SELECT 1 FROM named t WHERE NOT ${isRead('t')}
        UNION ALL SELECT 1 FROM to_all t WHERE ${isOpen('t')} AND NOT ${isRead('t')} AND NOT ${isNamed('t')}
        UNION ALL SELECT 1 FROM in_documents t WHERE NOT ${isRead('t')} AND NOT ${isNamed('t')}
        UNION ALL SELECT 1 FROM marked t ${found('t')} WHERE n."timestamp" = t."timestamp" AND ${IS_SHOWN} ${filtered('n')}
      ) every LIMIT ${budgets.count + 1}
    ), counted AS MATERIALIZED (
      SELECT least(count(*), ${budgets.count})::int AS count,
        CASE WHEN count(*) > ${budgets.count} THEN true ELSE (SELECT count(*) FROM named) > ${budgets.named}
          OR (SELECT count(*) FROM to_all) > ${budgets.toAll} OR (SELECT count(*) FROM marked) > ${budgets.marked}
          OR (SELECT count(*) FROM in_documents) > ${budgets.inDocuments} OR EXISTS (SELECT FROM in_documents WHERE cut) END AS more
      FROM unread
    )`;
  const beginning = `WITH ${WHO}, ${visibleTo('$3', ORGANIZATION, document)}, ${count}`;
  const answer = `counted.count, counted.more, (extract(epoch FROM statement_timestamp()) * 1000)::bigint AS as_of`;
  const shape = Object.entries({ document, location, unread, after: window.after }).flatMap(([key, value]) =>
    value ? [key] : [],
  );
  const name = (kind: string) =>
    [kind, ...shape, ...(budgets === BUDGETS ? [] : Object.values<number>({ ...budgets }))].join(' ');
  if (window.size === 0) return { name: name('inbox-count'), text: `${beginning} SELECT ${answer} FROM counted`, values };

  const size = `${use(window.size)}::int`;
  const position = window.after && `(${use(window.after.timestamp)}::bigint, ${use(window.after.notificationId)}::text)`;
  const look = unread ? `${budgets.page + 1}` : `${size} + 1`;
  const after = (id: string) => `${position ? `AND (t."timestamp", t.${id}) < ${position}` : ''} ${unread ? aboveMark : ''}`;
  const keys = (arm: string) => `SELECT "timestamp", id FROM (${arm}) t`;
  const arms = [
    keys(range('recipients', 'notification_id', `${ofUser} ${after('notification_id')}`, look)),
    // Those of a page of unread ones are filtered afterwards, so that each range is bounded by what it reads.
    keys(range('notifications', 'id', `${ofMembers} ${unread ? '' : `AND ${isOpen('t')}`} ${after('id')}`, look)),
    `(SELECT k."timestamp", k.id FROM visible v CROSS JOIN LATERAL (${range('notifications', 'id', `${ofDocument} ${after('id')}`, look)}) k
      ${NEWEST_FIRST} LIMIT ${look})`,
    ...(unread ? [keys(marked(look, position ? `AND (r."timestamp", r.notification_id) < ${position}` : ''))] : []),
  ];
  const shown = unread ? `WHERE n."timestamp" = t."timestamp" AND ${IS_SHOWN} AND NOT ${isRead('t')} ${filtered('n')}` : '';
  const text = `
    ${beginning}, looked AS MATERIALIZED (
      ${arms.join(' UNION ')} ${NEWEST_FIRST} LIMIT ${look}
    ), chosen AS MATERIALIZED (
      SELECT n.*, ${isRead('n')} AS read
      FROM (SELECT * FROM looked ${NEWEST_FIRST} LIMIT ${look}${unread ? ' - 1' : ''}) t ${found('t')} ${shown}
      ORDER BY t."timestamp" DESC, t.id DESC LIMIT ${size} + 1
    ), last_looked AS MATERIALIZED (
      SELECT * FROM looked ${NEWEST_FIRST} OFFSET ${look} - 2 LIMIT 2
    ), page AS (
      SELECT *, sum(size) OVER (${NEWEST_FIRST}) - size AS bytes_before FROM chosen
    )
    SELECT ${answer}, (SELECT count(*)::int FROM chosen) AS found,
      ${unread ? LOOKED_TO : 'NULL::json'} AS looked_to,
      page.id, page."timestamp", page.document_id, page.location_id, page.content, page.read
    FROM counted LEFT JOIN page ON page.bytes_before < ${PAGE_BYTES}
    ORDER BY page."timestamp" DESC, page.id DESC`;
  return { name: name('inbox'), text, values };
}
