import { Injectable } from '@nestjs/common';
import { DataSource } from 'typeorm';
import type { NewToken } from '../credentials';

export interface ListedToken {
  id: string;
  createdAt: Date;
  expiresAt: Date | null;
}

export interface ListedKey {
  key: string;
  name: string;
  disabled: boolean;
  createdAt: Date;
  /** Those that are accepted now. */
  tokens: ListedToken[];
}

const LIVE = 't.revoked_at IS NULL AND (t.expires_at IS NULL OR t.expires_at > now())';

/** API keys and their tokens. Every method is one statement. */
@Injectable()
export class ApiKeysRepository {
  constructor(private readonly dataSource: DataSource) {}

  /** The hashes that a token of this key may have now; undefined when the key is unknown. */
  async findLiveTokens(key: string): Promise<{ disabled: boolean; hashes: Buffer[] } | undefined> {
    const rows = await this.dataSource.query<{ disabled: boolean; hash: Buffer | null }[]>(
      `SELECT k.disabled_at IS NOT NULL AS disabled, t.hash
       FROM api_keys k LEFT JOIN tokens t ON t.api_key = k.key AND ${LIVE} WHERE k.key = $1`,
      [key],
    );
    return rows[0] && { disabled: rows[0].disabled, hashes: rows.flatMap(({ hash }) => hash ?? []) };
  }

  /** Does nothing when the key is there already. */
  async create(key: string, name: string, token: NewToken): Promise<void> {
    await this.dataSource.query(
      `WITH created AS (INSERT INTO api_keys (key, name) VALUES ($1, $2) ON CONFLICT DO NOTHING RETURNING key)
       INSERT INTO tokens (id, api_key, hash, expires_at) SELECT $3, key, $4, $5::timestamptz FROM created`,
      [key, name, token.id, token.hash, token.expiresAt ?? null],
    );
  }

  /** Gives the key one more token; false when the key is unknown. */
  async issueToken(key: string, token: NewToken): Promise<boolean> {
    const rows = await this.dataSource.query<unknown[]>(
      `INSERT INTO tokens (id, api_key, hash, expires_at)
       SELECT $2, key, $3, $4::timestamptz FROM api_keys WHERE key = $1 RETURNING id`,
      [key, token.id, token.hash, token.expiresAt ?? null],
    );
    return rows.length > 0;
  }

  /** Gives the key a new token and lets the others go on for `graceSeconds`; false when the key is unknown. */
  async rotate(key: string, token: NewToken, graceSeconds: number): Promise<boolean> {
    const rows = await this.dataSource.query<unknown[]>(
      // The update sees the rows of before: not the new token.
      `WITH expiring AS (
         UPDATE tokens t SET expires_at = least(t.expires_at, now() + make_interval(secs => $5))
         WHERE t.api_key = $1 AND ${LIVE}
       )
       INSERT INTO tokens (id, api_key, hash, expires_at)
       SELECT $2, key, $3, $4::timestamptz FROM api_keys WHERE key = $1 RETURNING id`,
      [key, token.id, token.hash, token.expiresAt ?? null, graceSeconds],
    );
    return rows.length > 0;
  }

  /** A disabled key keeps its tokens. False when the key is unknown. */
  async setDisabled(key: string, disabled: boolean): Promise<boolean> {
    const [, affected] = await this.dataSource.query<[unknown[], number]>(
      'UPDATE api_keys SET disabled_at = CASE WHEN $2 THEN coalesce(disabled_at, now()) END WHERE key = $1',
      [key, disabled],
    );
    return affected > 0;
  }

  /** Revokes all live tokens of a key; undefined when the key is unknown, else their ids. */
  async revokeAll(key: string): Promise<string[] | undefined> {
    const [row] = await this.dataSource.query<{ ids: string[] }[]>(
      `WITH revoked AS (UPDATE tokens t SET revoked_at = now() WHERE t.api_key = $1 AND ${LIVE} RETURNING t.id)
       SELECT (SELECT coalesce(array_agg(id), '{}') FROM revoked) AS ids FROM api_keys WHERE key = $1`,
      [key],
    );
    return row?.ids;
  }

  /** Revokes one token; false when there is none with that id. */
  async revokeToken(id: string): Promise<boolean> {
    const [, affected] = await this.dataSource.query<[unknown[], number]>(
      'UPDATE tokens SET revoked_at = coalesce(revoked_at, now()) WHERE id = $1',
      [id],
    );
    return affected > 0;
  }

  /** Every key, oldest first. */
  async list(): Promise<ListedKey[]> {
    const rows = await this.dataSource.query<
      (Omit<ListedKey, 'tokens'> & { tokenId: string | null; tokenCreatedAt: Date; tokenExpiresAt: Date | null })[]
    >(
      `SELECT k.key, k.name, k.disabled_at IS NOT NULL AS disabled, k.created_at AS "createdAt",
         t.id AS "tokenId", t.created_at AS "tokenCreatedAt", t.expires_at AS "tokenExpiresAt"
       FROM api_keys k LEFT JOIN tokens t ON t.api_key = k.key AND ${LIVE}
       ORDER BY k.created_at, k.key, t.created_at, t.id`,
    );
    const keys = new Map<string, ListedKey>();
    for (const { tokenId, tokenCreatedAt, tokenExpiresAt, ...key } of rows) {
      const listed = keys.get(key.key) ?? { ...key, tokens: [] };
      if (tokenId !== null) listed.tokens.push({ id: tokenId, createdAt: tokenCreatedAt, expiresAt: tokenExpiresAt });
      keys.set(key.key, listed);
    }
    return [...keys.values()];
  }
}
