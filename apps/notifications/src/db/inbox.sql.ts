import type { PreparedStatement } from '@app/postgres/connections/query-prepared';
import { PAGE_BYTES, type PageWindow } from './pages.repository';
import { isRead, MARK, ORGANIZATION, USER, WHO } from './read-state.sql';
import {
  isNamed,
  isOpen,
  isOpenToMember,
  isShown,
  MEMBER,
  MOST_LOOKED_AT,
  ofEachDocument,
  ofOrganization,
  ONE_BY_ONE,
  positionIn,
  visibleTo,
} from './visibility.sql';

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
  /** Looked through for a page of unread notifications, at first and, when these are not enough, at most. */
  pageAtFirst: number;
  page: number;
  /** Looked at for a page: documents of the user, and notifications to all, unless it is one of unread notifications. */
  lookAt: number;
}

export const BUDGETS: Budgets = {
  count: 100,
  named: 2000,
  toAll: 5000,
  inDocument: 2000,
  inDocuments: 5000,
  marked: 1000,
  pageAtFirst: 200,
  page: 2000,
  lookAt: MOST_LOOKED_AT,
};

const NEWEST_FIRST = 'ORDER BY "timestamp" DESC, id DESC';

/** Rows that are one range of an index, which has their timestamps and ids in this order. */
interface Range {
  table: 'recipients' | 'notifications';
  id: string;
  conditions: string;
}

const OF_USER: Range = { table: 'recipients', id: 'notification_id', conditions: 'AND t.user_id = $3::text' };
const TO_ALL: Range = { table: 'notifications', id: 'id', conditions: `AND t.notify_all AND ${ONE_BY_ONE}` };
const IN_DOCUMENT: Range = { ...TO_ALL, conditions: 'AND t.notify_all AND t.document_id = v.document_id' };
// Only where it is used: the index of a user's notifications does not have it.
const ITS_DOCUMENT = ', t.document_id';

/** The parts that a count looks through, one after the other. */
const PARTS = ['named', 'to_all', 'in_documents', 'marked'];

const ABOVE_MARK = `AND t."timestamp" > ${MARK}`;

/** The same. With both a position and {@link ABOVE_MARK} the planner expects few notifications of so short a time, and reads them by their age. */
const ABOVE_MARK_BELOW_POSITION = `AND t."timestamp" > ANY (ARRAY[${MARK}])`;

/** The last notification that was looked at for a page of unread ones, when there are more. */
const LAST_LOOKED = positionIn(`FROM last_looked WHERE (SELECT count(*) FROM last_looked) = 2 ${NEWEST_FIRST} LIMIT 1`);

/**
 * A page and the count of unread notifications in one statement, so that they never disagree. The page has the ranges of notifications/get, the
 * count those above the mark. They are read only as far as the page and the count need them. A window of size 0 is the count alone.
 *
 * @param look most notifications that are looked through for a page of unread ones
 */
export function inboxQuery(
  filter: InboxFilter,
  window: Omit<PageWindow, 'newestFirst'>,
  budgets = BUDGETS,
  look = budgets.page,
): PreparedStatement & { values: unknown[] } {
  const values: unknown[] = [filter.apiKey, filter.organizationId, filter.userId];
  const use = (value: unknown): string => `$${values.push(value)}`;
  const document = filter.documentId === undefined ? undefined : `${use(filter.documentId)}::text`;
  const location = filter.locationId === undefined ? undefined : `${use(filter.locationId)}::text`;
  const unread = filter.unread ?? false;
  const filtered = (of: string) =>
    `${document ? `AND ${of}.document_id = ${document}` : ''} ${location ? `AND ${of}.location_id = ${location}` : ''}`;
  // The planner must not read and sort a whole range, or all notifications by their age: it knows little of the values. So the organization is no
  // constant of the order, and the limit none of the plan.
  const range = (of: Range, limit: number | string, conditions: string, more = '') => `
    SELECT t."timestamp", t.${of.id} AS id ${more} FROM ${of.table} t
    WHERE t.organization = ANY (ARRAY[${ORGANIZATION}]) ${of.conditions} ${filtered('t')} ${conditions}
    ORDER BY t.organization DESC, t."timestamp" DESC, t.${of.id} DESC LIMIT (SELECT ${limit})`;
  const marked = (limit: number | string, conditions = '') => `
    SELECT r."timestamp", r.notification_id AS id FROM readings r
    WHERE r.organization = ${ORGANIZATION} AND r.user_id = $3::text AND NOT r.read AND r.asked = (SELECT asked FROM who)
      AND r."timestamp" <= ${MARK} ${conditions}
    ORDER BY r."timestamp" DESC, r.notification_id DESC LIMIT (SELECT ${limit})`;
  const found = (of: string) => `CROSS JOIN LATERAL (
    SELECT * FROM notifications x WHERE x.organization = ${ORGANIZATION} AND x.id = ${of}.id LIMIT 1) n`;

  // A document that the organization sees is counted once, with those to all its members.
  const count = `
    named AS MATERIALIZED (${range(OF_USER, budgets.named + 1, ABOVE_MARK)}
    ), to_all AS MATERIALIZED (${range(TO_ALL, budgets.toAll + 1, ABOVE_MARK, ITS_DOCUMENT)}
    ), in_documents AS MATERIALIZED (
      SELECT k.*, k.number > ${budgets.inDocument} AS cut FROM (
        SELECT * FROM visible v WHERE NOT (${MEMBER} AND ${isOpen('v.document_id', ORGANIZATION)})
      ) v CROSS JOIN LATERAL (
        SELECT *, row_number() OVER () AS number FROM (${range(IN_DOCUMENT, budgets.inDocument + 1, ABOVE_MARK, ITS_DOCUMENT)}) t
      ) k LIMIT ${budgets.inDocuments + 1}
    ), marked AS MATERIALIZED (${marked(budgets.marked + 1)}
    ), unread AS MATERIALIZED (
      SELECT part FROM (
        SELECT 1 AS part FROM named t WHERE NOT ${isRead('t')}
        UNION ALL SELECT 2 FROM to_all t WHERE ${isOpenToMember(document ?? 't.document_id', ORGANIZATION, USER)} AND NOT ${isRead('t')} AND NOT ${isNamed('t', ORGANIZATION, USER)}
        UNION ALL SELECT 3 FROM in_documents t WHERE NOT ${isRead('t')} AND NOT ${isNamed('t', ORGANIZATION, USER)}
        UNION ALL SELECT 4 FROM marked t ${found('t')} WHERE n."timestamp" = t."timestamp" AND ${isShown('n', ORGANIZATION, USER)} ${filtered('n')}
      ) every LIMIT ${budgets.count + 1}
    ), reached AS MATERIALIZED (
      SELECT count(*) AS count, CASE WHEN count(*) > ${budgets.count} THEN max(part) ELSE ${PARTS.length + 1} END AS part FROM unread
    ), counted AS MATERIALIZED (
      SELECT least(count, ${budgets.count})::int AS count,
        CASE WHEN count > ${budgets.count} THEN true ELSE (SELECT count(*) FROM named) > ${budgets.named}
          OR (SELECT count(*) FROM to_all) > ${budgets.toAll} OR (SELECT count(*) FROM marked) > ${budgets.marked}
          OR (SELECT count(*) FROM in_documents) > ${budgets.inDocuments} OR EXISTS (SELECT FROM in_documents WHERE cut) END AS more,
        -- A count that ends early has read the parts before its last one. Counting the rows of the others would read them.
        ((SELECT count(*) FROM unread WHERE unread.part = reached.part) + CASE WHEN part > 2 THEN (SELECT count(*) FROM open_to_user WHERE matters) ELSE 0 END
          + ${PARTS.map((of, number) => `CASE WHEN part > ${number + 1} THEN (SELECT count(*) FROM ${of}) ELSE 0 END`).join(' + ')})::int AS looked_at
      FROM reached
    )`;
  const beginning = `WITH ${WHO}, ${visibleTo('$3', ORGANIZATION, document, budgets.lookAt)}, ${count}`;
  // One less, because the timestamp of a notification is rounded, too: whatever begins to be stored after this answer has a later one.
  const answer = `counted.count, counted.more, counted.looked_at, (extract(epoch FROM statement_timestamp()) * 1000)::bigint - 1 AS as_of`;
  const shape = Object.entries({ document, location, unread, after: window.after }).flatMap(([key, value]) =>
    value ? [key] : [],
  );
  const name = (kind: string) =>
    [kind, ...shape, ...(budgets === BUDGETS ? [] : Object.values<number>({ ...budgets }))].join(' ');
  if (window.size === 0) return { name: name('inbox-count'), text: `${beginning} SELECT ${answer} FROM counted`, values };

  const size = `${use(window.size)}::int`;
  const position = window.after && `(${use(window.after.timestamp)}::bigint, ${use(window.after.notificationId)}::text)`;
  const most = unread ? `${use(look)}::int` : size;
  const below = (of: Range) => (position ? `AND (t."timestamp", t.${of.id}) < ${position}` : '');
  const aboveMark = (of: Range) => (position && of.table === 'notifications' ? ABOVE_MARK_BELOW_POSITION : ABOVE_MARK);
  const wanted = (of: Range) => `${below(of)} ${unread ? aboveMark(of) : ''}`;
  const isFiltered = document !== undefined || location !== undefined;
  const inDocuments = ofEachDocument(`(${most} + 1)`, 'DESC', unread ? `${MARK} + 1` : '-1', isFiltered, (some, part) =>
    range(IN_DOCUMENT, some, part ?? wanted(IN_DOCUMENT)),
  );
  const toAll = (conditions: string, some: string, more?: string) => range(TO_ALL, some, `${conditions} ${wanted(TO_ALL)}`, more);
  // Rows of a page of unread ones are filtered afterwards, so that each range is bounded by what it reads.
  const inOrganization = unread
    ? { ctes: '', rows: toAll('', `${most} + 1`), upTo: '', lookedTo: LAST_LOOKED, looked: '0' }
    : ofOrganization(`(SELECT ${most} + 1)`, 'DESC', [ORGANIZATION, USER], document, budgets.lookAt, toAll);
  const keys = (arm: string) => `SELECT "timestamp", id FROM (${arm}) t`;
  const arms = [
    keys(range(OF_USER, `${most} + 1`, wanted(OF_USER))),
    keys(inOrganization.rows),
    `(${inDocuments.rows})`,
    ...(unread ? [keys(marked(`${most} + 1`, position ? `AND (r."timestamp", r.notification_id) < ${position}` : ''))] : []),
  ];
  const shown = unread
    ? `WHERE n."timestamp" = t."timestamp" AND ${isShown('n', ORGANIZATION, USER)} AND NOT ${isRead('t')} ${filtered('n')}`
    : '';
  const text = `
    ${beginning}, ${inOrganization.ctes} ${inDocuments.ctes} looked AS MATERIALIZED (
      SELECT * FROM (${arms.join(' UNION ')}) every ${inOrganization.upTo} ${NEWEST_FIRST} LIMIT ${most} + 1
    ), chosen AS MATERIALIZED (
      SELECT n.*, ${isRead('n')} AS read
      FROM (SELECT * FROM looked ${NEWEST_FIRST} LIMIT ${unread ? most : `${most} + 1`}) t ${found('t')} ${shown}
      ORDER BY t."timestamp" DESC, t.id DESC LIMIT ${size} + 1
    ), last_looked AS MATERIALIZED (
      SELECT * FROM looked ${NEWEST_FIRST} OFFSET ${most} - 1 LIMIT 2
    ), page AS (
      SELECT *, sum(size) OVER (${NEWEST_FIRST}) - size AS bytes_before FROM chosen
    )
    SELECT ${answer}, (SELECT count(*)::int FROM chosen) AS found,
      ((SELECT count(*) FROM open_to_user WHERE matters) + (SELECT count(*) FROM looked) + ${inOrganization.looked})::int AS looked_at_for_page,
      ${inOrganization.lookedTo} AS looked_to,
      page.id, page."timestamp", page.document_id, page.location_id, page.content::text, page.read
    FROM counted LEFT JOIN page ON page.bytes_before < ${PAGE_BYTES}
    ORDER BY page."timestamp" DESC, page.id DESC`;
  return { name: name('inbox'), text, values };
}
