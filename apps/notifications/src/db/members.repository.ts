import { Injectable } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { queryPrepared } from '@app/postgres/connections/query-prepared';
import { ADD, FIND, LEAVE, ORGANIZATION, REMOVE, SET_DOCUMENT } from './members.sql';

export interface CopiedMembership {
  level: 'organization' | 'folder' | 'document';
  /** Empty for the organization. */
  id: string;
}

/** The level at which users were added or removed. */
export function levelOf({ documentId, folderId }: { documentId?: string; folderId?: string }): CopiedMembership {
  if (documentId !== undefined) return { level: 'document', id: documentId };
  if (folderId !== undefined) return { level: 'folder', id: folderId };
  return { level: 'organization', id: '' };
}

export interface CopiedDocument {
  documentId: string;
  folderId?: string;
  access: string;
  version: number;
}

/** A membership as it is copied, which has not been ended by itself. */
export interface KnownMembership extends CopiedMembership {
  /** Whether it has not ended with a departure either. */
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

/** An answer of the users service about a user, or a part of it. */
export interface FetchedMemberships {
  memberships: readonly (CopiedMembership & { version?: number })[];
  /** Version at which the user last left the organization. */
  left?: number;
  /** Memberships that were copied before the question and are missing in the answer, with their `added` at that time. */
  wrong: readonly (CopiedMembership & { added: string })[];
  /** Whether more parts follow. */
  more?: boolean;
}

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

  /** @param at time of the event in epoch milliseconds. One of more than 6 days ago adds nobody, and the next read asks */
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

  /** Copied memberships of a user after a given one, in the order of levels and ids. @param most most memberships */
  async known(
    apiKey: string,
    organizationId: string,
    userId: string,
    { after, most }: { after?: CopiedMembership; most: number },
  ): Promise<KnownMembership[]> {
    const { level = '', id = '' } = after ?? {};
    return this.dataSource.query(
      `WITH organization AS MATERIALIZED (SELECT id FROM organizations WHERE api_key = $1 AND organization_id = $2)
       SELECT m.level, m.id, m.added, m.added > coalesce((
         SELECT d.version FROM departures d WHERE d.organization = (SELECT id FROM organization) AND d.user_id = $3), -1) AS live
       FROM members m WHERE m.organization = (SELECT id FROM organization) AND m.user_id = $3
         AND m.added > m.removed AND (m.level, m.id) > ($4::text, $5::text)
       ORDER BY m.level, m.id LIMIT $6`,
      [apiKey, organizationId, userId, level, id, most],
    );
  }

  /** Whether anything is copied about the memberships of a user, ended ones included. */
  async isKnown(apiKey: string, organizationId: string, userId: string): Promise<boolean> {
    const found = await this.dataSource.query<unknown[]>(
      `SELECT FROM members m WHERE m.user_id = $3
         AND m.organization = (SELECT id FROM organizations WHERE api_key = $1 AND organization_id = $2) LIMIT 1`,
      [apiKey, organizationId, userId],
    );
    return found.length > 0;
  }

  /**
   * Applies an answer of the users service, and marks the user as complete unless more parts follow. A `wrong` membership is not deleted: one that
   * began after the question has a greater version, and stays.
   */
  async complete(
    apiKey: string,
    organizationId: string,
    userId: string,
    { memberships, left, wrong, more = false }: FetchedMemberships,
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
         -- Not what has begun again since. An UPDATE would join all of them with all of them. OFFSET 0 keeps each look-up separate.
         INSERT INTO members AS m (organization, user_id, level, id, added, removed)
         SELECT o.id, $3, w.level, w.id, w.added, w.added
         FROM organization o, unnest($7::text[], $8::text[], $9::bigint[]) AS w(level, id, added)
         WHERE EXISTS (SELECT FROM members k WHERE k.organization = o.id AND k.user_id = $3 AND k.level = w.level AND k.id = w.id AND k.added = w.added OFFSET 0)
         ORDER BY w.level COLLATE "C", w.id COLLATE "C"
         ON CONFLICT (organization, user_id, level, id) DO UPDATE SET removed = excluded.removed
           WHERE m.added = excluded.added AND m.removed < excluded.removed
       )
       INSERT INTO complete_members (organization, user_id) SELECT id, $3 FROM organization WHERE $11::boolean ON CONFLICT DO NOTHING`,
      [
        apiKey,
        organizationId,
        userId,
        ...columnsOf(memberships),
        versionsOf(memberships),
        ...columnsOf(wrong),
        wrong.map(({ added }) => added),
        left ?? null,
        !more,
      ],
    );
  }
}
