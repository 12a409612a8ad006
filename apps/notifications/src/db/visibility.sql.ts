/** The one rule which notifications a user is shown. It is that of access.check of the users service. */

/** Leaves out the memberships that have ended. */
const LIVE = 'AND m.added > m.removed AND m.added > (SELECT version FROM departed)';

export const MEMBER = '(SELECT member FROM of_organization)';

/** Whether the user sees so many documents that each notification is asked about instead. */
const MANY = '(SELECT are_many FROM how_many)';

/** Most documents of a user that one page looks into, and most notifications to all that it looks at. */
export const MOST_LOOKED_AT = 5000;

/**
 * Documents that a user sees in addition to those of the organization: the user's documents, the documents of the user's folders, and public ones. Each
 * document costs a look into it, so the last two parts leave out what a member of the organization sees anyway. With more than `most` there is none in
 * `visible`: see {@link MANY}. {@link MEMBER} and {@link isShown} need these CTEs.
 */
export const visibleTo = (user: string, organization: string, document: string | undefined, most = MOST_LOOKED_AT): string => `
  departed AS MATERIALIZED (
    SELECT coalesce((SELECT d.version FROM departures d WHERE d.organization = ${organization} AND d.user_id = ${user}), -1) AS version
  ), of_organization AS MATERIALIZED (
    SELECT EXISTS (SELECT FROM members m
      WHERE m.organization = ${organization} AND m.user_id = ${user} AND m.level = 'organization' AND m.id = '' ${LIVE}) AS member
  ), open_to_user AS MATERIALIZED (
    SELECT m.id AS document_id, true AS matters FROM members m
    WHERE m.organization = ${organization} AND m.user_id = ${user} AND m.level = 'document' ${LIVE} ${document ? `AND m.id = ${document}` : ''}
    UNION ALL
    SELECT a.document_id, a.access = 'restricted' OR NOT ${MEMBER}
    FROM members m JOIN document_access a ON a.organization = m.organization AND a.folder_id = m.id
    WHERE m.organization = ${organization} AND m.user_id = ${user} AND m.level = 'folder' ${LIVE} ${document ? `AND a.document_id = ${document}` : ''}
    UNION ALL
    SELECT a.document_id, true FROM document_access a
    WHERE a.organization = ${organization} AND a.access = 'public' ${document ? `AND a.document_id = ${document}` : ''}
      AND NOT ${MEMBER}
    LIMIT ${most + 1}
  ), how_many AS MATERIALIZED (
    SELECT count(*) > ${most} AS are_many FROM open_to_user
  ), visible AS MATERIALIZED (
    SELECT DISTINCT document_id FROM open_to_user WHERE matters AND NOT ${MANY}
  )`;

/**
 * Whether all members of the organization may open a document. Not NOT EXISTS: the planner makes a join of it, estimates almost no rows, and reads and
 * sorts all rows instead of a page.
 */
export const isOpen = (document: string, organization: string): string => `coalesce((SELECT a.access FROM document_access a
      WHERE a.organization = ${organization} AND a.document_id = ${document}), '') <> 'restricted'`;

/** Whether a document is one of the user's own, or of a folder of the user, or public. */
const isOpenTo = (document: string, organization: string, user: string): string => {
  const has = (level: string, id: string) => `(SELECT true FROM members m
      WHERE m.organization = ${organization} AND m.user_id = ${user} AND m.level = '${level}' AND m.id = ${id} ${LIVE}) IS TRUE`;
  return `(${has('document', document)} OR (SELECT a.access = 'public' OR a.folder_id IS NOT NULL AND ${has('folder', 'a.folder_id')}
      FROM document_access a WHERE a.organization = ${organization} AND a.document_id = ${document}) IS TRUE)`;
};

/** Whether notifications to all may be shown to the user that are of no document in `visible`: each has to be asked about. */
export const ONE_BY_ONE = `(${MEMBER} OR ${MANY})`;

/** Whether notifications to all of a document that is not in `visible` are shown to the user. */
export const isOpenToMember = (document: string, organization: string, user: string): string =>
  `(${MEMBER} AND ${isOpen(document, organization)} OR ${MANY} AND ${isOpenTo(document, organization, user)})`;

/** JSON of the position of the row that a SELECT finds. @param from the rest of the SELECT */
export const positionIn = (from: string) => `(SELECT json_build_object('timestamp', "timestamp", 'notificationId', id) ${from})`;

/**
 * The first `most` notifications to all that are shown, without those of `visible`. A single document is asked about once. Otherwise each notification
 * is, and after `lookAt` of them the page ends: nearly all may be of restricted documents.
 *
 * @param most SQL
 * @param document SQL: the only one that counts
 * @param rows selects "timestamp" and id in the order of the page, under more conditions, at most so many, and with more columns
 * @returns SQL: `upTo`, the condition of all rows of the page; `lookedTo`, the position at which it ends, or null; `looked`, a number of rows
 */
export const ofOrganization = (
  most: string,
  direction: 'ASC' | 'DESC',
  [organization, user]: readonly [organization: string, user: string],
  document: string | undefined,
  lookAt: number,
  rows: (conditions: string, most: string, more?: string) => string,
): Record<'ctes' | 'rows' | 'upTo' | 'lookedTo' | 'looked', string> => {
  if (document)
    return {
      ctes: '',
      rows: rows(`AND ${isOpenToMember(document, organization, user)}`, most),
      upTo: '',
      lookedTo: 'NULL::json',
      looked: '0',
    };
  const shown = isOpenToMember('t.document_id', organization, user);
  const end = 'FROM to_organization WHERE is_end';
  return {
    ctes: `to_organization AS MATERIALIZED (
      SELECT t."timestamp", t.id, t.number, t.number < ${lookAt} OR ${shown} AS is_shown, t.number = ${lookAt} AS is_end
      FROM (SELECT *, row_number() OVER () AS number FROM (${rows(`AND ${ONE_BY_ONE}`, `${lookAt}`, ', t.document_id')}) t) t
      WHERE t.number = ${lookAt} OR ${shown} LIMIT ${most}
    ),`,
    rows: 'SELECT "timestamp", id FROM to_organization WHERE is_shown',
    upTo: `WHERE (("timestamp", id) ${direction === 'DESC' ? '>=' : '<='} (SELECT "timestamp", id ${end})) IS NOT FALSE`,
    lookedTo: positionIn(end),
    looked: '(SELECT coalesce(max(number), 0) FROM to_organization)',
  };
};

/**
 * Whether the notification of an alias names the user. Not EXISTS: for many ids the planner would read all notifications of the user into a hash
 * table. document_id is redundant in the key: without it an index that contains it would be searched for each document of the user.
 */
export const isNamed = (of: string, organization: string, user: string): string =>
  `(SELECT true FROM recipients r WHERE r.organization = ${organization} AND r.user_id = ${user}
      AND r.document_id = ${of}.document_id AND r."timestamp" = ${of}."timestamp" AND r.notification_id = ${of}.id) IS TRUE`;

/** Whether the notification of an alias is shown to the user. */
export const isShown = (of: string, organization: string, user: string): string =>
  `((${of}.notify_all AND (${isOpenToMember(`${of}.document_id`, organization, user)} OR ${of}.document_id IN (SELECT document_id FROM visible))) OR ${isNamed(of, organization, user)})`;

/**
 * The first `most` of the rows that all documents in `visible` have. To read so many of each document would cost documents times rows. So each document
 * gives a share first. The row that is then the last of the first ones is a limit: only a document whose share ends before it can have more of them.
 *
 * @param most SQL
 * @param direction of the order by "timestamp" and id
 * @param end SQL: a timestamp that no row of the page is behind, and only wanted rows are before
 * @param isFiltered whether only one document counts, or one location: then each gives all, because an index without the document might be read otherwise
 * @param rows selects "timestamp" and id of a document `v` in this order: at most so many, in a part of the page instead of all of it
 */
export const ofEachDocument = (
  most: string,
  direction: 'ASC' | 'DESC',
  end: string,
  isFiltered: boolean,
  rows: (most: string, part?: string) => string,
): { ctes: string; rows: string } => {
  const [before, behind] = direction === 'DESC' ? ['>', '<'] : ['<', '>'];
  const limit = `(coalesce((SELECT "timestamp" FROM share_limit), ${end}), coalesce((SELECT id FROM share_limit), ''))`;
  const order = `ORDER BY 1 ${direction}, 2 ${direction}`;
  if (isFiltered)
    return { ctes: '', rows: `SELECT k.* FROM visible v CROSS JOIN LATERAL (${rows(most)}) k ${order} LIMIT ${most}` };
  const rest = `AND (t."timestamp", t.id) ${behind} (v."timestamp", v.id) AND (t."timestamp", t.id) ${before}= ${limit}`;
  return {
    ctes: `share AS MATERIALIZED (
      SELECT (${most}::bigint + greatest(count(*), 1) - 1) / greatest(count(*), 1) AS size FROM visible
    ), shares AS MATERIALIZED (
      SELECT k."timestamp", k.id, v.document_id, k.number = (SELECT size FROM share) AS is_full FROM visible v CROSS JOIN LATERAL (
        SELECT *, row_number() OVER () AS number FROM (${rows('(SELECT size FROM share)')}) t
      ) k
    ), share_limit AS MATERIALIZED (
      SELECT "timestamp", id FROM shares ${order} OFFSET ${most} - 1 LIMIT 1
    ),`,
    rows: `SELECT "timestamp", id FROM shares
      UNION ALL SELECT k.* FROM shares v CROSS JOIN LATERAL (${rows(most, rest)}) k
        WHERE v.is_full AND (v."timestamp", v.id) ${before} ${limit}
      ${order} LIMIT ${most}`,
  };
};
