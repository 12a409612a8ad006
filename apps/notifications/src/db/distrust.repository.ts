import type { DataSource } from 'typeorm';

/** The end of a page: the number of an organization, and the rest of the key of a row. */
export type CopyPosition = readonly string[];

interface Walk {
  start: CopyPosition;
  /** Changes the page of $1 rows after the position in the further parameters, and selects their number and the key of the last one. */
  text: string;
}

const endOf = (rows: string, key: string) => `
  SELECT count(*) OVER () AS rows, organization::text, ${key} FROM ${rows} ORDER BY ${['organization', ...key.split(', ')].map((part) => `${part} DESC`).join(', ')} LIMIT 1`;

/**
 * Each walk marks rows of the copy so that what the users service says next replaces them, whatever numbers they have. Until then they stay valid.
 * In this order: with the numbers of its rows reset before its departure is gone, a user would be missed.
 */
export const WALKS = {
  departures: {
    start: ['0', ''],
    text: `
      WITH gone AS (
        DELETE FROM departures WHERE (organization, user_id) IN (
          SELECT organization, user_id FROM departures WHERE (organization, user_id) > ($2::bigint, $3)
          ORDER BY organization, user_id LIMIT $1)
        RETURNING *
      ), ended AS (
        UPDATE members m SET added = -1, removed = -1 FROM gone g
        WHERE m.organization = g.organization AND m.user_id = g.user_id AND m.added <= g.version
      )
      ${endOf('gone', 'user_id')}`,
  },
  members: {
    start: ['0', '', '', ''],
    text: `
      WITH page AS MATERIALIZED (
        SELECT m.organization, m.user_id, m.level, m.id, coalesce(d.version, -1) AS departed
        FROM members m LEFT JOIN departures d ON d.organization = m.organization AND d.user_id = m.user_id
        WHERE (m.organization, m.user_id, m.level, m.id) > ($2::bigint, $3, $4, $5)
        ORDER BY m.organization, m.user_id, m.level, m.id LIMIT $1
      ), reset AS (
        UPDATE members m SET
          added = CASE WHEN m.added > m.removed AND m.added > p.departed THEN p.departed + 1 ELSE -1 END,
          removed = -1
        FROM page p
        WHERE m.organization = p.organization AND m.user_id = p.user_id AND m.level = p.level AND m.id = p.id
          AND (m.added > 0 OR m.removed > -1)
      )
      ${endOf('page', 'user_id, level, id')}`,
  },
  /** The next read for each of these users asks the users service. */
  'complete members': {
    start: ['0', ''],
    text: `
      WITH gone AS (
        DELETE FROM complete_members WHERE (organization, user_id) IN (
          SELECT organization, user_id FROM complete_members WHERE (organization, user_id) > ($2::bigint, $3)
          ORDER BY organization, user_id LIMIT $1)
        RETURNING organization, user_id
      )
      ${endOf('gone', 'user_id')}`,
  },
  documents: {
    start: ['0', ''],
    text: `
      WITH page AS (
        UPDATE document_access SET version = 0 WHERE (organization, document_id) IN (
          SELECT organization, document_id FROM document_access WHERE (organization, document_id) > ($2::bigint, $3)
          ORDER BY organization, document_id LIMIT $1)
        RETURNING organization, document_id
      )
      ${endOf('page', 'document_id')}`,
  },
} satisfies Record<string, Walk>;

/** Marks the copy of memberships and of document access as not trusted, page by page, while the service runs. */
export class DistrustRepository {
  constructor(private readonly dataSource: DataSource) {}

  /** A membership that is numbered anew has ended at no known time: its 30 days begin again. */
  async forgetTimes(): Promise<void> {
    await this.dataSource.query('DELETE FROM version_times');
  }

  /**
   * @param size rows in a page, each of which is one statement
   * @param walked called after each page with their number until then
   */
  async walk({ start, text }: Walk, size: number, walked?: (rows: number) => void): Promise<void> {
    let total = 0;
    for (let after = start; ;) {
      const [page]: ({ rows: string } & Record<string, string>)[] = await this.dataSource.query(text, [size, ...after]);
      if (!page) return;
      const { rows, ...last } = page;
      after = Object.values(last);
      walked?.((total += Number(rows)));
    }
  }
}
