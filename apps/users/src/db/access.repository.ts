import { Injectable } from '@nestjs/common';
import { DataSource } from 'typeorm';

/** Memberships of a user that matter for a document, and the access type of the document. */
export interface Access {
  ofDocument: boolean;
  ofFolder: boolean;
  ofOrganization: boolean;
  /** undefined when the document is unknown. */
  access?: string;
}

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

/** Reads memberships and access types. Every method is one statement. */
@Injectable()
export class AccessRepository {
  constructor(private readonly dataSource: DataSource) {}

  async find(apiKey: string, organizationId: string, documentId: string, userId: string): Promise<Access | undefined> {
    const [found] = await this.dataSource.query<(Omit<Access, 'access'> & { access: string | null })[]>(
      `SELECT d.access,
         EXISTS (SELECT FROM document_members m WHERE m.organization = o.id AND m.document_id = $3 AND m.user_id = $4) AS "ofDocument",
         EXISTS (SELECT FROM folder_members m WHERE m.organization = o.id AND m.folder_id = d.folder_id AND m.user_id = $4) AS "ofFolder",
         EXISTS (SELECT FROM organization_members m WHERE m.organization = o.id AND m.user_id = $4) AS "ofOrganization"
       FROM organizations o LEFT JOIN documents d ON d.organization = o.id AND d.document_id = $3
       WHERE o.api_key = $1 AND o.organization_id = $2`,
      [apiKey, organizationId, documentId, userId],
    );
    return found && { ...found, access: found.access ?? undefined };
  }

  /** Memberships of a user after a given one, in the order of levels and ids. */
  async memberships(
    { apiKey, organizationId, userId }: { apiKey: string; organizationId: string; userId: string },
    { after, limit }: { after?: StoredMembership; limit: number },
  ): Promise<StoredMembership[]> {
    return this.dataSource.query(
      `WITH organization AS (SELECT id FROM organizations WHERE api_key = $1 AND organization_id = $2), memberships AS (
         SELECT 'organization' AS level, '' AS id FROM organization_members m JOIN organization o ON m.organization = o.id WHERE user_id = $3
         UNION ALL SELECT 'folder', folder_id FROM folder_members m JOIN organization o ON m.organization = o.id WHERE user_id = $3
         UNION ALL SELECT 'document', document_id FROM document_members m JOIN organization o ON m.organization = o.id WHERE user_id = $3
       )
       SELECT level, id FROM memberships WHERE $4::text IS NULL OR (level COLLATE "C", id) > ($4, $5::text)
       ORDER BY level COLLATE "C", id LIMIT $6`,
      [apiKey, organizationId, userId, after?.level ?? null, after?.id ?? null, limit],
    );
  }

  /** Members of the organization, or of one of its documents, after a given user, in the order of user ids. */
  async contacts(
    { apiKey, organizationId, documentId }: { apiKey: string; organizationId: string; documentId?: string },
    { after = '', limit }: { after?: string; limit: number },
  ): Promise<StoredContact[]> {
    const members = documentId === undefined ? 'organization_members m' : 'document_members m';
    return this.dataSource.query(
      `SELECT u.user_id AS "userId", u.name, u.email, u.initial
       FROM organizations o
       JOIN ${members} ON m.organization = o.id ${documentId === undefined ? '' : 'AND m.document_id = $5'}
       JOIN users u ON u.organization = m.organization AND u.user_id = m.user_id
       WHERE o.api_key = $1 AND o.organization_id = $2 AND m.user_id > $3
       ORDER BY m.user_id LIMIT $4`,
      [apiKey, organizationId, after, limit, ...(documentId === undefined ? [] : [documentId])],
    );
  }
}
