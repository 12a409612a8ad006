import { Injectable } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { queryPrepared } from '@app/postgres/query-prepared';

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

/** Position in a scan of the copy: the number of an organization, and a user or document in it. */
export type CopyPosition = [organization: string, id: string];

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

const ADD = {
  name: 'copy-members',
  text: `
  WITH ${ORGANIZATION}
  INSERT INTO members (organization, user_id, level, id)
  SELECT o.id, u.user_id, $4, $5 FROM organization o, unnest($3::text[]) AS u(user_id) ORDER BY u.user_id COLLATE "C"
  ON CONFLICT DO NOTHING`,
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

const columnsOf = (memberships: readonly CopiedMembership[]) => [
  memberships.map(({ level }) => level),
  memberships.map(({ id }) => id),
];

/** The copy of memberships and of document access. A repeated or older change has no effect. */
@Injectable()
export class MembersRepository {
  constructor(private readonly dataSource: DataSource) {}

  async add(apiKey: string, organizationId: string, { level, id }: CopiedMembership, userIds: readonly string[]): Promise<void> {
    await queryPrepared(this.dataSource, ADD, [apiKey, organizationId, userIds, level, id]);
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

  /** The copied memberships of a user, complete or not. */
  async copied(apiKey: string, organizationId: string, userId: string): Promise<CopiedMembership[]> {
    return this.dataSource.query(
      `SELECT m.level, m.id FROM organizations o JOIN members m ON m.organization = o.id
       WHERE o.api_key = $1 AND o.organization_id = $2 AND m.user_id = $3`,
      [apiKey, organizationId, userId],
    );
  }

  /** Adds the memberships of a user, removes the `wrong` ones, and marks the user as complete if there are memberships. */
  async complete(
    apiKey: string,
    organizationId: string,
    userId: string,
    { memberships, wrong }: { memberships: readonly CopiedMembership[]; wrong: readonly CopiedMembership[] },
  ): Promise<void> {
    await this.dataSource.query(
      `WITH ${ORGANIZATION}, added AS (
         INSERT INTO members (organization, user_id, level, id)
         SELECT o.id, $3, m.level, m.id FROM organization o, unnest($4::text[], $5::text[]) AS m(level, id)
         ORDER BY m.level COLLATE "C", m.id COLLATE "C"
         ON CONFLICT DO NOTHING
       ), removed AS (
         DELETE FROM members m USING organization o, unnest($6::text[], $7::text[]) AS w(level, id)
         WHERE m.organization = o.id AND m.user_id = $3 AND m.level = w.level AND m.id = w.id
       )
       INSERT INTO complete_members (organization, user_id) SELECT id, $3 FROM organization
       WHERE cardinality($4::text[]) > 0 ON CONFLICT DO NOTHING`,
      [apiKey, organizationId, userId, ...columnsOf(memberships), ...columnsOf(wrong)],
    );
  }

  /**
   * Marks a page of users as incomplete, so that the next read for each user asks the users service.
   *
   * @returns the end of the page; undefined when no row follows `after`
   */
  distrustUsers(after: CopyPosition, size: number): Promise<CopyPosition | undefined> {
    return this.walk(
      `DELETE FROM complete_members WHERE (organization, user_id) IN (
         SELECT organization, user_id FROM complete_members WHERE (organization, user_id) > ($1::bigint, $2)
         ORDER BY organization, user_id LIMIT $3)
       RETURNING organization, user_id AS id`,
      after,
      size,
    );
  }

  /** Sets the version of a page of documents to 0, so that any event replaces them. They stay valid until then. Returns as {@link distrustUsers}. */
  distrustDocuments(after: CopyPosition, size: number): Promise<CopyPosition | undefined> {
    return this.walk(
      `UPDATE document_access SET version = 0 WHERE (organization, document_id) IN (
         SELECT organization, document_id FROM document_access WHERE (organization, document_id) > ($1::bigint, $2)
         ORDER BY organization, document_id LIMIT $3)
       RETURNING organization, document_id AS id`,
      after,
      size,
    );
  }

  private async walk(change: string, [organization, id]: CopyPosition, size: number): Promise<CopyPosition | undefined> {
    const [last] = await this.dataSource.query<{ organization: string; id: string }[]>(
      `WITH changed AS (${change}) SELECT organization, id FROM changed ORDER BY organization DESC, id DESC LIMIT 1`,
      [organization, id, size],
    );
    return last && [last.organization, last.id];
  }
}
