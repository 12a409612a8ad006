import { Injectable } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { hasLostRace, violatedConstraint } from '@app/postgres/errors';
import { queryPrepared } from '@app/postgres/connections/query-prepared';
import { activeTrace } from '@app/tracing/tracing';
import { EVENT_TYPES } from '@app/contracts/event-types';
import { organizationCte } from './organization.sql';

export interface NewDocument {
  apiKey: string;
  organizationId: string;
  documentId: string;
  folderId?: string;
  access: string;
  /** Epoch milliseconds. Nothing becomes visible more than a second after it. */
  deadline?: number;
}

/**
 * - `stored`;
 * - `unknownApiKey`: there is no such key;
 * - `missed`: too late, or a race was lost. Nothing was stored, and another attempt may succeed.
 */
export type StoredDocument = { outcome: 'stored'; version: number; changed: boolean } | { outcome: 'unknownApiKey' | 'missed' };

/** Same structure, locks and table order as the statements that add members, so they cannot deadlock. Exported for the test of its plan. */
export const SET_DOCUMENT = {
  name: 'set-document',
  text: `${organizationCte(6, 7)}, named_folder AS (
    INSERT INTO folders (organization, folder_id) SELECT id, $4::text FROM organization WHERE $4::text IS NOT NULL ON CONFLICT DO NOTHING
  ), stored AS (
    INSERT INTO documents AS d (organization, document_id, folder_id, access, version)
    SELECT id, $3::text, $4::text, $5::text, nextval('versions') FROM organization
    ON CONFLICT (organization, document_id) DO UPDATE SET
      folder_id = excluded.folder_id,
      access = excluded.access,
      -- Drawn while the row is locked, so the later of two changes has the greater version.
      version = nextval('versions')
    WHERE (d.folder_id, d.access) IS DISTINCT FROM (excluded.folder_id, excluded.access) OR d.version = 0
    RETURNING version
  ), document_changed AS (
    INSERT INTO outbox (type, api_key, organization_id, data, trace)
    SELECT '${EVENT_TYPES.documentChanged}', $1::text, $2::text, json_strip_nulls(json_build_object(
      'organizationId', $2::text, 'documentId', $3::text, 'folderId', $4::text, 'access', $5::text, 'version', version)), $7::text
    FROM stored
  )
  SELECT o.id AS organization, (SELECT version FROM stored) AS version FROM organization o`,
};

@Injectable()
export class DocumentsRepository {
  constructor(private readonly dataSource: DataSource) {}

  /** One statement, and so one commit: missing organization and folder, the document, and the event. */
  async set(document: NewDocument): Promise<StoredDocument> {
    const { apiKey, organizationId, documentId, folderId, access, deadline } = document;
    try {
      const [stored] = await queryPrepared<{ organization: string; version: string | null }>(
        this.dataSource,
        SET_DOCUMENT,
        [apiKey, organizationId, documentId, folderId ?? null, access, deadline ?? null, activeTrace()],
        deadline,
      );
      if (!stored) return { outcome: 'missed' };
      const changed = stored.version !== null;
      const version = stored.version ?? (await this.versionOf(stored.organization, document));
      return version === undefined ? { outcome: 'missed' } : { outcome: 'stored', version: Number(version), changed };
    } catch (error) {
      if (violatedConstraint(error) === 'organizations_api_key_fkey') return { outcome: 'unknownApiKey' };
      if (hasLostRace(error)) return { outcome: 'missed' };
      throw error;
    }
  }

  /**
   * A separate statement, because the previous one cannot see a row that was committed while it waited.
   *
   * @returns undefined when another call has set something else since: its version is not that of what was set here
   */
  private async versionOf(organization: string, { documentId, folderId, access }: NewDocument): Promise<string | undefined> {
    const [found] = await this.dataSource.query<{ version: string }[]>(
      `SELECT version FROM documents
       WHERE organization = $1 AND document_id = $2 AND access = $3 AND folder_id IS NOT DISTINCT FROM $4::text`,
      [organization, documentId, access, folderId ?? null],
    );
    return found?.version;
  }
}
