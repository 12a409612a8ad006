import { Injectable } from '@nestjs/common';
import { DataSource } from 'typeorm';

export interface Existing {
  apiKey: boolean;
  organization: boolean;
  document: boolean;
}

@Injectable()
export class OrganizationsRepository {
  constructor(private readonly dataSource: DataSource) {}

  /** Whether these exist. An id that is not given counts as missing. */
  async find(apiKey: string, organizationId?: string, documentId?: string): Promise<Existing> {
    const [existing] = await this.dataSource.query<[Existing]>(
      `WITH organization AS (SELECT id FROM organizations WHERE api_key = $1 AND organization_id = $2)
       SELECT EXISTS (SELECT FROM api_keys WHERE key = $1) AS "apiKey",
              EXISTS (SELECT FROM organization) AS organization,
              EXISTS (SELECT FROM documents d JOIN organization o ON d.organization = o.id WHERE d.document_id = $3) AS document`,
      [apiKey, organizationId ?? null, documentId ?? null],
    );
    return existing;
  }
}
