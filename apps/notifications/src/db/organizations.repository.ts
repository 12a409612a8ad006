import { Injectable } from '@nestjs/common';
import { DataSource } from 'typeorm';

/** Existence of tenants, organizations and documents according to this service's own tables. */
@Injectable()
export class OrganizationsRepository {
  constructor(private readonly dataSource: DataSource) {}

  /** Whether an organization of this tenant is stored. */
  async hasTenant(apiKey: string): Promise<boolean> {
    const rows = await this.dataSource.query<unknown[]>('SELECT 1 FROM organizations WHERE api_key = $1 LIMIT 1', [apiKey]);
    return rows.length > 0;
  }

  async find(apiKey: string, organizationId: string, documentId: string): Promise<{ organization: boolean; document: boolean }> {
    const rows = await this.dataSource.query<{ document: boolean }[]>(
      `SELECT EXISTS (SELECT FROM documents d WHERE d.organization = o.id AND d.document_id = $3) AS document
       FROM organizations o WHERE o.api_key = $1 AND o.organization_id = $2`,
      [apiKey, organizationId, documentId],
    );
    return { organization: rows.length > 0, document: rows[0]?.document ?? false };
  }
}
