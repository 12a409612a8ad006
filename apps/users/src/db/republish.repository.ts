import type { DataSource } from 'typeorm';
import { EVENT_TYPES } from '@app/contracts/event-types';
import { live } from './live.sql';
import { WRITTEN_ELSEWHERE } from '@app/api-keys/api-keys.repository';

/** Kinds of republished rows, in this order: listeners must know the access type of a document before its members. */
export const KINDS = ['documents', 'organization members', 'folder members', 'document members', 'departures'] as const;
export type Kind = (typeof KINDS)[number];

/** End of a page: number of the organization, folder or document, user. Empty strings where a kind has no such part. */
export type Position = [organization: string, id: string, userId: string];
export const START: Position = ['0', '', ''];

export interface WrittenPage {
  rows: number;
  events: number;
  last: Position;
}

const outboxed = (events: string) => `
  written AS (
    INSERT INTO outbox (type, api_key, organization_id, data) ${events} RETURNING pg_notify('${WRITTEN_ELSEWHERE}', '')
  )`;

const pageOf = (kind: Kind): string => {
  const [level] = kind.split(' ');
  // A document that was never set has version 0. Listeners assume the default access type for it, so it is not republished.
  if (kind === 'documents')
    return `SELECT organization, document_id AS id, '' AS user_id, folder_id, access, version FROM documents
      WHERE version > 0 AND (organization, document_id) > ($1::bigint, $2) AND $3 = ''`;
  if (kind === 'departures')
    return `SELECT organization, '' AS id, user_id, left_version FROM users
      WHERE left_version >= 0 AND (organization, user_id) > ($1::bigint, $3) AND $2 = ''`;
  if (kind === 'organization members')
    return `SELECT organization, '' AS id, user_id, added, removed FROM organization_members
      WHERE (organization, user_id) > ($1::bigint, $3) AND $2 = ''`;
  return `SELECT organization, ${level}_id AS id, user_id, added, removed FROM ${level}_members
      WHERE (organization, ${level}_id, user_id) > ($1::bigint, $2, $3)`;
};

const eventsOf = (kind: Kind): string => {
  if (kind === 'documents')
    return `SELECT '${EVENT_TYPES.documentChanged}', o.api_key, o.organization_id, json_strip_nulls(json_build_object(
        'organizationId', o.organization_id, 'documentId', p.id, 'folderId', p.folder_id, 'access', p.access,
        'version', p.version, 'republished', true))
      FROM page p JOIN organizations o ON o.id = p.organization`;
  if (kind === 'departures') return removals('', 'left_version', 'true');
  const [level] = kind.split(' ');
  const at = level === 'organization' ? '' : `'${level}Id', p.id,`;
  // A membership that ended because the user left the organization has no event: that of the departure ends it.
  return `SELECT '${EVENT_TYPES.userAdded}', o.api_key, o.organization_id, json_strip_nulls(json_build_object(
        'organizationId', o.organization_id, ${at} 'republished', true,
        'users', json_agg(json_build_object('userId', u.user_id, 'name', u.name, 'email', u.email, 'initial', u.initial,
          'version', nullif(u.version, 0), 'membership', p.added))))
      FROM page p JOIN organizations o ON o.id = p.organization JOIN users u ON u.organization = p.organization AND u.user_id = p.user_id
      WHERE ${live('p')}
      GROUP BY o.id, p.id
    UNION ALL ${removals(at, 'removed', 'p.removed > p.added')}`;
};

const removals = (at: string, version: string, condition: string) => `
    SELECT '${EVENT_TYPES.userRemoved}', o.api_key, o.organization_id, json_build_object(
      'organizationId', o.organization_id, ${at} 'republished', true,
      'users', json_agg(json_build_object('userId', p.user_id, 'version', p.${version})))
    FROM page p JOIN organizations o ON o.id = p.organization
    WHERE ${condition}
    GROUP BY o.id, p.id`;

const ORDER: Record<Kind, string> = {
  documents: 'organization, id',
  'organization members': 'organization, user_id',
  'folder members': 'organization, id, user_id',
  'document members': 'organization, id, user_id',
  departures: 'organization, user_id',
};

/** Writes events for existing documents, memberships and their ends into the outbox. Every method is one statement. */
export class RepublishRepository {
  constructor(private readonly dataSource: DataSource) {}

  /** Writes the events of the page after a position. @returns undefined when no row follows. An event has at most `size` users */
  async writePage(kind: Kind, [organization, id, userId]: Position, size: number): Promise<WrittenPage | undefined> {
    const [page] = await this.dataSource.query<{ rows: number; events: number; last: Position | null }[]>(
      `WITH page AS MATERIALIZED (
         SELECT * FROM (${pageOf(kind)}) behind ORDER BY ${ORDER[kind]} LIMIT $4
       ), ${outboxed(eventsOf(kind))}
       SELECT (SELECT count(*)::int FROM page) AS rows, (SELECT count(*)::int FROM written) AS events,
         (SELECT ARRAY[organization::text, id, user_id] FROM page
          ORDER BY organization DESC, id DESC, user_id DESC LIMIT 1) AS last`,
      [organization, id, userId, size],
    );
    return page?.last ? { ...page, last: page.last } : undefined;
  }

  /** Number of unpublished events, counted up to `most`. */
  async waiting(most: number): Promise<number> {
    const [found] = await this.dataSource.query<[{ events: number }]>(
      'SELECT count(*)::int AS events FROM (SELECT FROM outbox LIMIT $1) bounded',
      [most],
    );
    return found.events;
  }
}
