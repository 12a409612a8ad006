import { Injectable } from '@nestjs/common';
import { DataSource } from 'typeorm';
import type { Level } from './level';
import { live } from './live.sql';

/** Memberships of a user that matter for a document, and the access type of the document. */
export interface Access {
  ofDocument: boolean;
  ofFolder: boolean;
  ofOrganization: boolean;
  /** undefined when the document is unknown. */
  access?: string;
}

/** Most members that one page looks at. Users who have left stay in the table for 30 days, and each is looked up. */
export const MOST_LOOKED_AT = 10_000;

export interface StoredContact {
  userId: string;
  name: string | null;
  email: string | null;
  initial: string | null;
}

export interface StoredMembership {
  level: 'organization' | 'folder' | 'document';
  /** Empty for the organization. */
  id: string;
}

/** The live memberships of a user, and the version at which the user last left the organization. */
export interface StoredMemberships {
  memberships: (StoredMembership & { version: number })[];
  left?: number;
  /** Number of memberships that were looked at, live or not. */
  rows: number;
  lookedTo?: StoredMembership;
}

/** Reads memberships and access types. Every method is one statement. */
@Injectable()
export class AccessRepository {
  constructor(private readonly dataSource: DataSource) {}

  async find(apiKey: string, organizationId: string, documentId: string, userId: string): Promise<Access | undefined> {
    const [found] = await this.dataSource.query<(Omit<Access, 'access'> & { access: string | null })[]>(
      `SELECT d.access,
         EXISTS (SELECT FROM document_members m WHERE m.organization = o.id AND m.document_id = $3 AND m.user_id = $4 AND ${live()}) AS "ofDocument",
         EXISTS (SELECT FROM folder_members m WHERE m.organization = o.id AND m.folder_id = d.folder_id AND m.user_id = $4 AND ${live()}) AS "ofFolder",
         EXISTS (SELECT FROM organization_members m WHERE m.organization = o.id AND m.user_id = $4 AND ${live()}) AS "ofOrganization"
       FROM organizations o LEFT JOIN documents d ON d.organization = o.id AND d.document_id = $3
       LEFT JOIN users u ON u.organization = o.id AND u.user_id = $4
       WHERE o.api_key = $1 AND o.organization_id = $2`,
      [apiKey, organizationId, documentId, userId],
    );
    return found && { ...found, access: found.access ?? undefined };
  }

  /**
   * Memberships of a user after a given one, in the order of levels and ids.
   *
   * @param limit most memberships that are looked at. Ended ones stay in the tables for 30 days, and are left out
   * @returns `lookedTo` when there may be more after it
   */
  async memberships(
    { apiKey, organizationId, userId }: { apiKey: string; organizationId: string; userId: string },
    { after, limit }: { after?: StoredMembership; limit: number },
  ): Promise<StoredMemberships> {
    const rows = (level: string, id: string, conditions: string) =>
      `SELECT '${level}' COLLATE "C" AS level, ${id} AS id, m.added,
         m.added > m.removed AND m.added > (SELECT left_version FROM member) AS live
       FROM ${level}_members m WHERE m.organization = (SELECT organization FROM member) AND m.user_id = $3 AND ${conditions}`;
    // Each part is one range of an index, in its order.
    const range = (level: string) => {
      const id = `m.${level}_id`;
      const position = `'${level}' >= $4::text COLLATE "C" AND ${id} > CASE $4::text WHEN '${level}' THEN $5::text ELSE '' END`;
      return `(${rows(level, id, position)} ORDER BY ${id} LIMIT $6::int + 1)`;
    };
    const [{ left, lookedTo, ...found }] = await this.dataSource.query<
      (Pick<StoredMemberships, 'memberships' | 'rows'> & { left: string | null; lookedTo: StoredMembership | null })[]
    >(
      `WITH member AS MATERIALIZED (
         SELECT u.organization, u.left_version FROM organizations o JOIN users u ON u.organization = o.id
         WHERE o.api_key = $1 AND o.organization_id = $2 AND u.user_id = $3
       ), looked AS MATERIALIZED (
         SELECT * FROM (
           ${range('document')} UNION ALL ${range('folder')}
           UNION ALL (${rows('organization', `''`, `$4::text COLLATE "C" < 'organization'`)})
         ) every ORDER BY level, id LIMIT $6::int + 1
       ), page AS MATERIALIZED (
         SELECT * FROM looked ORDER BY level, id LIMIT $6::int
       )
       SELECT (SELECT coalesce(json_agg(json_build_object('level', level, 'id', id, 'version', added) ORDER BY level, id), '[]')
           FROM page WHERE live) AS memberships,
         (SELECT left_version FROM member WHERE left_version >= 0) AS left, (SELECT count(*)::int FROM looked) AS rows,
         (SELECT json_build_object('level', level, 'id', id) FROM page WHERE (SELECT count(*) FROM looked) > $6::int
           ORDER BY level DESC, id DESC LIMIT 1) AS "lookedTo"`,
      [apiKey, organizationId, userId, after?.level ?? '', after?.id ?? '', limit],
    );
    return { ...found, ...(left !== null && { left: Number(left) }), ...(lookedTo && { lookedTo }) };
  }

  /**
   * Users who were added at a level, after a given user, in the order of user ids.
   *
   * @param userIds only these
   * @returns `next` when there may be more. Then a page may have fewer users than asked for, even none: it looks through a limited number of members,
   *   of whom many may have left. `rows`: members and ids that were looked at
   */
  async contacts(
    {
      apiKey,
      organizationId,
      level,
      userIds,
    }: { apiKey: string; organizationId: string; level: Level; userIds?: readonly string[] },
    { after = '', pageSize }: { after?: string; pageSize: number },
  ): Promise<{ users: StoredContact[]; next?: string; rows: number }> {
    // One more row shows whether there is a next page.
    const values: unknown[] = [apiKey, organizationId, after, pageSize + 1];
    const use = (value: unknown) => `$${values.push(value)}`;
    const sameId = level.of === 'organization' ? '' : `AND m.${level.of}_id = ${use(level.id)}`;
    const members = `SELECT * FROM ${level.of}_members m
         WHERE m.organization = (SELECT id FROM organizations WHERE api_key = $1 AND organization_id = $2) ${sameId} AND m.user_id > $3`;
    // OFFSET 0 hides the order and the LIMIT from the plan of the look-up by ids: PostgreSQL before 17 cannot look up in the order of the key, and
    // would walk along all members to reach the LIMIT.
    const chosen = userIds ? `${members} AND m.user_id = ANY (${use(userIds)}::text[]) OFFSET 0` : members;
    // The inner LIMIT 1 keeps the planner from joining and sorting all members at once: a page reads its members in the order of the key. The last
    // member that it may look at is returned in any case, and so is the last of all: their numbers say how many were looked at.
    const rows = await this.dataSource.query<(StoredContact & { live: boolean; number: string })[]>(
      `SELECT m.user_id AS "userId", u.name, u.email, u.initial, u.user_id IS NOT NULL AS live, m.number
       FROM (
         SELECT m.*, row_number() OVER w AS number, lead(m.user_id) OVER w IS NULL AS "isLast" FROM (${chosen}) m
         WINDOW w AS (ORDER BY m.user_id) ORDER BY m.user_id LIMIT ${MOST_LOOKED_AT}
       ) m LEFT JOIN LATERAL (
         SELECT * FROM users u WHERE u.organization = m.organization AND u.user_id = m.user_id AND ${live()} LIMIT 1
       ) u ON true
       WHERE u.user_id IS NOT NULL OR m.number = ${MOST_LOOKED_AT} OR m."isLast"
       ORDER BY m.user_id LIMIT $4`,
      values,
    );
    const lookedAt = Number(rows.at(-1)?.number ?? 0);
    const found = rows.filter((row) => row.live || Number(row.number) === MOST_LOOKED_AT);
    const page = found.slice(0, pageSize);
    const hasMore = found.length > pageSize || lookedAt === MOST_LOOKED_AT;
    const users = page.filter((row) => row.live).map(({ userId, name, email, initial }) => ({ userId, name, email, initial }));
    return { users, ...(hasMore && { next: page.at(-1)?.userId }), rows: (userIds?.length ?? 0) + lookedAt };
  }
}
