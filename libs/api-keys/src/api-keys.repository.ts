import { Injectable } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { EVENT_TYPES } from '@app/contracts/event-types';
import { queryPrepared } from '@app/postgres/connections/query-prepared';
import type { NewToken } from './credentials';

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
  /** Tokens that are accepted now. */
  tokens: ListedToken[];
  /** Broker accounts that may publish for it. */
  publishers: string[];
}

/** NOTIFY on it wakes the relays of the running users service, for a program that writes events into its outbox and has no relay. */
export const WRITTEN_ELSEWHERE = 'users_outbox_written_elsewhere';

const LIVE = 't.revoked_at IS NULL AND (t.expires_at IS NULL OR t.expires_at > now())';

/** Writes the event that tokens end. Relation `ended` has the columns `api_key` and `id`, which is null for a whole key. */
const outboxRevoked = (ended: string, reason: 'disabled' | 'revoked' | 'rotated', endsAt = 'now()') => `
  outboxed AS (
    INSERT INTO outbox (type, api_key, organization_id, data)
    SELECT '${EVENT_TYPES.apiKeyRevoked}', api_key, api_key, json_strip_nulls(json_build_object(
      'apiKey', api_key, 'reason', '${reason}', 'tokenIds', json_agg(id ORDER BY id) FILTER (WHERE id IS NOT NULL),
      'endsAt', floor(extract(epoch FROM ${endsAt}) * 1000)::bigint))
    FROM ${ended} GROUP BY api_key
    RETURNING pg_notify('${WRITTEN_ELSEWHERE}', '')
  )`;

/** Stands for every publisher that the broker accepts, also without user_id. */
export const ANYBODY = '*';

const FIND_LIVE_TOKENS = {
  name: 'find-live-tokens',
  text: `
    SELECT k.disabled_at IS NOT NULL AS disabled, t.hash
    FROM api_keys k LEFT JOIN tokens t ON t.api_key = k.key AND ${LIVE} WHERE k.key = $1`,
};

/** API keys, their tokens and their publisher grants. Every method is one statement, and so one commit together with its event. */
@Injectable()
export class ApiKeysRepository {
  constructor(private readonly dataSource: DataSource) {}

  /** Hashes of the live tokens of this key; undefined when the key is unknown. */
  async findLiveTokens(key: string): Promise<{ disabled: boolean; hashes: Buffer[] } | undefined> {
    const rows = await queryPrepared<{ disabled: boolean; hash: Buffer | null }>(this.dataSource, FIND_LIVE_TOKENS, [key]);
    return rows[0] && { disabled: rows[0].disabled, hashes: rows.flatMap(({ hash }) => hash ?? []) };
  }

  /** @returns false, and nothing changes, when the key exists already */
  async create(key: string, name: string, token: NewToken): Promise<boolean> {
    const rows = await this.dataSource.query<unknown[]>(
      `WITH created AS (INSERT INTO api_keys (key, name) VALUES ($1, $2) ON CONFLICT DO NOTHING RETURNING key)
       INSERT INTO tokens (id, api_key, hash, expires_at) SELECT $3, key, $4, $5::timestamptz FROM created RETURNING id`,
      [key, name, token.id, token.hash, token.expiresAt ?? null],
    );
    return rows.length > 0;
  }

  /** Adds a token to a key. @returns false when the key is unknown */
  async issueToken(key: string, token: NewToken): Promise<boolean> {
    const rows = await this.dataSource.query<unknown[]>(
      `INSERT INTO tokens (id, api_key, hash, expires_at)
       SELECT $2, key, $3, $4::timestamptz FROM api_keys WHERE key = $1 RETURNING id`,
      [key, token.id, token.hash, token.expiresAt ?? null],
    );
    return rows.length > 0;
  }

  /** Adds a token to a key, and lets its other tokens expire after `graceSeconds`. @returns false when the key is unknown */
  async rotate(key: string, token: NewToken, graceSeconds: number): Promise<boolean> {
    const rows = await this.dataSource.query<unknown[]>(
      // The UPDATE uses the same snapshot as the INSERT, so it does not see the new token.
      `WITH expiring AS (
         UPDATE tokens t SET expires_at = least(t.expires_at, now() + make_interval(secs => $5))
         WHERE t.api_key = $1 AND ${LIVE} RETURNING t.api_key, t.id
       ), ${outboxRevoked('expiring', 'rotated', 'now() + make_interval(secs => $5)')}
       INSERT INTO tokens (id, api_key, hash, expires_at)
       SELECT $2, key, $3, $4::timestamptz FROM api_keys WHERE key = $1 RETURNING id`,
      [key, token.id, token.hash, token.expiresAt ?? null, graceSeconds],
    );
    return rows.length > 0;
  }

  /** Disables or enables a key. A disabled key keeps its tokens. @returns false when the key is unknown */
  async setDisabled(key: string, disabled: boolean): Promise<boolean> {
    const rows = await this.dataSource.query<unknown[]>(
      `WITH changed AS (
         UPDATE api_keys SET disabled_at = CASE WHEN $2 THEN now() END WHERE key = $1 AND (disabled_at IS NOT NULL) <> $2
         RETURNING key AS api_key, NULL::text AS id
       ), disabled AS (
         SELECT * FROM changed WHERE $2
       ), ${outboxRevoked('disabled', 'disabled')}
       SELECT FROM api_keys WHERE key = $1`,
      [key, disabled],
    );
    return rows.length > 0;
  }

  /** Revokes all live tokens of a key. @returns their ids; undefined when the key is unknown */
  async revokeAll(key: string): Promise<string[] | undefined> {
    const [row] = await this.dataSource.query<{ ids: string[] }[]>(
      `WITH revoked AS (
         UPDATE tokens t SET revoked_at = now() WHERE t.api_key = $1 AND ${LIVE} RETURNING t.api_key, t.id
       ), ${outboxRevoked('revoked', 'revoked')}
       SELECT (SELECT coalesce(array_agg(id), '{}') FROM revoked) AS ids FROM api_keys WHERE key = $1`,
      [key],
    );
    return row?.ids;
  }

  /** Revokes one token. @returns false when no token has that id */
  async revokeToken(id: string): Promise<boolean> {
    const rows = await this.dataSource.query<unknown[]>(
      `WITH revoked AS (
         UPDATE tokens t SET revoked_at = now() WHERE t.id = $1 AND t.revoked_at IS NULL RETURNING t.api_key, t.id
       ), ${outboxRevoked('revoked', 'revoked')}
       SELECT FROM tokens WHERE id = $1`,
      [id],
    );
    return rows.length > 0;
  }

  /** Whether a broker account may publish for a key that is not disabled. */
  async isGranted(publisher: string, key: string): Promise<boolean> {
    const rows = await this.dataSource.query<unknown[]>(
      `SELECT FROM publisher_grants g JOIN api_keys k ON k.key = g.api_key
       WHERE g.api_key = $1 AND g.publisher IN ($2, '${ANYBODY}') AND k.disabled_at IS NULL LIMIT 1`,
      [key, publisher],
    );
    return rows.length > 0;
  }

  /** Lets a broker account publish for a key. @returns false when the key is unknown */
  async grant(key: string, publisher: string): Promise<boolean> {
    const [row] = await this.dataSource.query<{ known: boolean }[]>(
      `WITH granted AS (
         INSERT INTO publisher_grants (api_key, publisher) SELECT key, $2 FROM api_keys WHERE key = $1 ON CONFLICT DO NOTHING
       )
       SELECT EXISTS (SELECT FROM api_keys WHERE key = $1) AS known`,
      [key, publisher],
    );
    return row?.known ?? false;
  }

  /** Withdraws a grant. @returns false when there was no such grant */
  async withdraw(key: string, publisher: string): Promise<boolean> {
    const [, affected] = await this.dataSource.query<[unknown[], number]>(
      'DELETE FROM publisher_grants WHERE api_key = $1 AND publisher = $2',
      [key, publisher],
    );
    return affected > 0;
  }

  /**
   * Keys, oldest first.
   *
   * @param text only keys with this in their key or name; the key itself is always among them
   * @param most default: all
   */
  async list(text = '', most?: number): Promise<ListedKey[]> {
    const rows = await this.dataSource.query<
      (Omit<ListedKey, 'tokens'> & { tokenId: string | null; tokenCreatedAt: Date; tokenExpiresAt: Date | null })[]
    >(
      `SELECT k.key, k.name, k.disabled_at IS NOT NULL AS disabled, k.created_at AS "createdAt",
         ARRAY(SELECT publisher FROM publisher_grants g WHERE g.api_key = k.key ORDER BY publisher) AS publishers,
         t.id AS "tokenId", t.created_at AS "tokenCreatedAt", t.expires_at AS "tokenExpiresAt"
       FROM (
         SELECT * FROM api_keys WHERE position(lower($1) IN lower(key)) > 0 OR position(lower($1) IN lower(name)) > 0
         ORDER BY key = $1 DESC, created_at, key LIMIT $2
       ) k LEFT JOIN tokens t ON t.api_key = k.key AND ${LIVE}
       ORDER BY k.created_at, k.key, t.created_at, t.id`,
      [text, most ?? null],
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
