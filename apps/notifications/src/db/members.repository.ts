import { Injectable } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { queryPrepared } from '@app/postgres/connections/query-prepared';

export interface CopiedMembership {
  level: 'organization' | 'folder' | 'document';
  /** Empty for the organization. */
  id: string;
}

export interface CopiedDocument {
  documentId: string;
  folderId?: string;
  access: string;
  version: number;
}

/** A membership as it is copied, live or not. */
export interface KnownMembership extends CopiedMembership {
  live: boolean;
  /** Greatest version among its known additions. */
  added: string;
}

/** A change of a user. The membership is live while the greatest version of its additions is greater than that of all its removals. */
export interface ChangedMember {
  userId: string;
  /** Absent only in an addition, of which it counts as 0. */
  version?: number;
}

/** The answer of the users service about a user. */
export interface CompleteMemberships {
  memberships: readonly (CopiedMembership & { version?: number })[];
  /** Version at which the user last left the organization. */
  left?: number;
  /** Memberships that were copied before the question and are missing in the answer, with their `added` at that time. */
  wrong: readonly (CopiedMembership & { added: string })[];
}

/** The number of an organization, which is created when missing. It waits for another transaction that is creating the same one. */
const ORGANIZATION = `
  known AS MATERIALIZED (
    SELECT id FROM organizations WHERE api_key = $1 AND organization_id = $2
  ), created AS (
    INSERT INTO organizations (api_key, organization_id) SELECT $1, $2 WHERE NOT EXISTS (SELECT FROM known)
    ON CONFLICT (api_key, organization_id) DO UPDATE SET organization_id = excluded.organization_id
    RETURNING id
  ), organization AS MATERIALIZED (
    SELECT id FROM known UNION ALL SELECT id FROM created
  )`;

/**
 * Users of an event, in `sent`, and those of them in `erased` who were erased after the change that the event is about. They are looked up one by
 * one only when the API key has erased users: most keys have none.
 */
const SENT = (versions: string) => `
  sent AS MATERIALIZED (
    SELECT o.id AS organization, u.user_id, u.version FROM organization o, unnest($3::text[], ${versions}::bigint[]) AS u(user_id, version)
  ), erased AS MATERIALIZED (
    SELECT s.organization, s.user_id FROM sent s WHERE (SELECT EXISTS (SELECT FROM erased_users WHERE api_key = $1)) AND EXISTS (
      SELECT FROM erased_users x CROSS JOIN LATERAL (SELECT * FROM erasures e WHERE e.id = x.erasure OFFSET 0) e
      WHERE x.api_key = $1 AND x.user_hash = sha256(convert_to(s.user_id, 'UTF8')) AND e.version >= coalesce(s.version, 0)
        AND (e.organization_ids IS NULL OR $2 = ANY (e.organization_ids)))
  )`;
const NOT_ERASED = 'WHERE u.user_id NOT IN (SELECT user_id FROM erased)';

/** A day less than ended memberships are kept: clocks differ, and an event is written a moment before its membership ends. */
const IS_NEW = `to_timestamp($7::bigint / 1000.0) > now() - interval '29 days'`;

/**
 * The greatest version counts, so that order and repetition do not matter. An addition without a version, of an earlier process of users or of two
 * calls at the same time, may be newer than a known removal. One that began before an erasure may have been committed after it. The removal that
 * ended an old one may be deleted already. In these cases the next read asks the users service. OFFSET 0 keeps each look-up separate.
 */
const ADD = {
  name: 'copy-members',
  text: `
  WITH ${ORGANIZATION}, ${SENT('$6')}, asked_again AS (
    DELETE FROM complete_members c USING sent s
    WHERE c.organization = s.organization AND c.user_id = s.user_id AND (NOT ${IS_NEW}
      OR s.user_id IN (SELECT user_id FROM erased) OR s.version IS NULL AND (
      EXISTS (SELECT FROM members m WHERE m.organization = s.organization AND m.user_id = s.user_id
        AND m.level = $4 AND m.id = $5 AND m.removed >= 0 OFFSET 0)
      OR EXISTS (SELECT FROM departures d WHERE d.organization = s.organization AND d.user_id = s.user_id OFFSET 0)))
  )
  INSERT INTO members AS m (organization, user_id, level, id, added)
  SELECT organization, user_id, $4, $5, coalesce(version, 0) FROM sent u ${NOT_ERASED} AND ${IS_NEW} ORDER BY user_id COLLATE "C"
  ON CONFLICT (organization, user_id, level, id) DO UPDATE SET added = excluded.added WHERE m.added < excluded.added`,
};

/** A removal that arrives before its addition leaves a row that refuses the addition. */
const REMOVE = {
  name: 'end-members',
  text: `
  WITH ${ORGANIZATION}, ${SENT('$6')}
  INSERT INTO members AS m (organization, user_id, level, id, added, removed)
  SELECT u.organization, u.user_id, $4, $5, -1, u.version FROM sent u ${NOT_ERASED}
  ORDER BY u.user_id COLLATE "C"
  ON CONFLICT (organization, user_id, level, id) DO UPDATE SET removed = excluded.removed WHERE m.removed < excluded.removed`,
};

const LEAVE = {
  name: 'copy-departures',
  text: `
  WITH ${ORGANIZATION}, ${SENT('$4')}
  INSERT INTO departures AS d (organization, user_id, version)
  SELECT u.organization, u.user_id, u.version FROM sent u ${NOT_ERASED}
  ORDER BY u.user_id COLLATE "C"
  ON CONFLICT (organization, user_id) DO UPDATE SET version = excluded.version WHERE d.version < excluded.version`,
};

const SET_DOCUMENT = {
  name: 'copy-document',
  text: `
  WITH ${ORGANIZATION}
  INSERT INTO document_access AS d (organization, document_id, folder_id, access, version)
  SELECT id, $3, $4, $5, $6 FROM organization
  ON CONFLICT (organization, document_id) DO UPDATE SET
    folder_id = excluded.folder_id, access = excluded.access, version = excluded.version
  WHERE d.version < excluded.version`,
};

const FIND = {
  name: 'is-complete',
  text: `
  SELECT EXISTS (SELECT FROM complete_members c WHERE c.organization = o.id AND c.user_id = $3) AS complete,
         EXISTS (SELECT FROM notifications n WHERE n.organization = o.id AND n.notify_all) AS matters
  FROM organizations o
  WHERE o.api_key = $1 AND o.organization_id = $2`,
};

const userIdsOf = (users: readonly ChangedMember[]) => users.map(({ userId }) => userId);

const versionsOf = (changes: readonly { version?: number }[]) => changes.map(({ version }) => version ?? null);

const valuesOf = (apiKey: string, organizationId: string, { level, id }: CopiedMembership, users: readonly ChangedMember[]) => [
  apiKey,
  organizationId,
  userIdsOf(users),
  level,
  id,
  versionsOf(users),
];

const columnsOf = (memberships: readonly CopiedMembership[]) => [
  memberships.map(({ level }) => level),
  memberships.map(({ id }) => id),
];

/** The copy of memberships and of document access. A repeated or older change has no effect. */
@Injectable()
export class MembersRepository {
  constructor(private readonly dataSource: DataSource) {}

  /** @param at time of the event in epoch milliseconds. One of more than 29 days ago adds nobody, and the next read asks */
  async add(
    apiKey: string,
    organizationId: string,
    membership: CopiedMembership,
    users: readonly ChangedMember[],
    at = Date.now(),
  ): Promise<void> {
    await queryPrepared(this.dataSource, ADD, [...valuesOf(apiKey, organizationId, membership, users), at]);
  }

  /** Ends one membership of each user. */
  async remove(
    apiKey: string,
    organizationId: string,
    membership: CopiedMembership,
    users: readonly ChangedMember[],
  ): Promise<void> {
    await queryPrepared(this.dataSource, REMOVE, valuesOf(apiKey, organizationId, membership, users));
  }

  /** Ends all memberships of each user in the organization, in folders and documents too. */
  async leave(apiKey: string, organizationId: string, users: readonly ChangedMember[]): Promise<void> {
    await queryPrepared(this.dataSource, LEAVE, [apiKey, organizationId, userIdsOf(users), versionsOf(users)]);
  }

  async setDocument(apiKey: string, organizationId: string, document: CopiedDocument): Promise<void> {
    const { documentId, folderId, access, version } = document;
    await queryPrepared(this.dataSource, SET_DOCUMENT, [apiKey, organizationId, documentId, folderId ?? null, access, version]);
  }

  /** complete: all memberships of the user are copied. matters: the organization has notifyAll notifications, which depend on memberships. */
  async find(apiKey: string, organizationId: string, userId: string): Promise<{ complete: boolean; matters: boolean }> {
    const [found] = await queryPrepared<{ complete: boolean; matters: boolean }>(this.dataSource, FIND, [
      apiKey,
      organizationId,
      userId,
    ]);
    return found ?? { complete: false, matters: false };
  }

  /** The copied memberships of a user, complete or not, live or not. */
  async known(apiKey: string, organizationId: string, userId: string): Promise<KnownMembership[]> {
    return this.dataSource.query(
      `SELECT m.level, m.id, m.added, m.added > m.removed AND m.added > coalesce(d.version, -1) AS live
       FROM organizations o JOIN members m ON m.organization = o.id
       LEFT JOIN departures d ON d.organization = m.organization AND d.user_id = m.user_id
       WHERE o.api_key = $1 AND o.organization_id = $2 AND m.user_id = $3`,
      [apiKey, organizationId, userId],
    );
  }

  /**
   * Applies the answer of the users service, and marks the user as complete. A `wrong` membership is not deleted: one that began after the question
   * has a greater version, and stays.
   */
  async complete(
    apiKey: string,
    organizationId: string,
    userId: string,
    { memberships, left, wrong }: CompleteMemberships,
  ): Promise<void> {
    await this.dataSource.query(
      `WITH ${ORGANIZATION}, added AS (
         INSERT INTO members AS m (organization, user_id, level, id, added)
         SELECT o.id, $3, a.level, a.id, coalesce(a.version, 0)
         FROM organization o, unnest($4::text[], $5::text[], $6::bigint[]) AS a(level, id, version)
         ORDER BY a.level COLLATE "C", a.id COLLATE "C"
         ON CONFLICT (organization, user_id, level, id) DO UPDATE SET added = excluded.added WHERE m.added < excluded.added
       ), departed AS (
         INSERT INTO departures AS d (organization, user_id, version) SELECT id, $3, $10::bigint FROM organization WHERE $10::bigint IS NOT NULL
         ON CONFLICT (organization, user_id) DO UPDATE SET version = excluded.version WHERE d.version < excluded.version
       ), ended AS (
         UPDATE members m SET removed = w.added FROM organization o, unnest($7::text[], $8::text[], $9::bigint[]) AS w(level, id, added)
         WHERE m.organization = o.id AND m.user_id = $3 AND m.level = w.level AND m.id = w.id AND m.removed < w.added
           -- Without statistics the join alone would read all memberships of the user.
           AND m.level = ANY ($7::text[]) AND m.id = ANY ($8::text[])
       )
       INSERT INTO complete_members (organization, user_id) SELECT id, $3 FROM organization ON CONFLICT DO NOTHING`,
      [
        apiKey,
        organizationId,
        userId,
        ...columnsOf(memberships),
        versionsOf(memberships),
        ...columnsOf(wrong),
        wrong.map(({ added }) => added),
        left ?? null,
      ],
    );
  }
}
