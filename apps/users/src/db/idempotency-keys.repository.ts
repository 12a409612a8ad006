import { Injectable } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { KEEP_KEYS_HOURS } from '@app/postgres/retention/expired-keys';

/** Names of operations in the idempotency keys. A key that is the `message_id` of a message never meets an Idempotency-Key. */
export const OPERATIONS = {
  add: 'users.add',
  delete: 'users.delete',
  deleteMessage: 'users.delete message',
  erase: 'users.erase',
  eraseMessage: 'users.erase message',
} as const;
export type OperationName = (typeof OPERATIONS)[keyof typeof OPERATIONS];

/** Most expired keys that one statement deletes: more than it inserts, so the table shrinks before the loop comes. */
const EXPIRED_AT_ONCE = 10;

/** Deletes some expired keys, unless `key` is null. The arguments are SQL: those of the answer that the statement writes. */
export const expiredCte = (apiKey: string, operation: string, key: string) => `
  expired AS (
    DELETE FROM idempotency_keys WHERE (api_key, operation, key) IN (
      SELECT api_key, operation, key FROM idempotency_keys
      WHERE ${key}::text IS NOT NULL AND created_at < now() - interval '${KEEP_KEYS_HOURS} hours'
        AND (api_key, operation, key) <> (${apiKey}::text, ${operation}, ${key}::text)
      ORDER BY created_at LIMIT ${EXPIRED_AT_ONCE} FOR UPDATE SKIP LOCKED)
  )`;

export interface KeptAnswer {
  fingerprint: Buffer;
  answer: unknown;
}

/** First answers by Idempotency-Key. The statement with the effect writes them, and deletes expired ones. */
@Injectable()
export class IdempotencyKeysRepository {
  constructor(private readonly dataSource: DataSource) {}

  /** The first use of a key. A separate statement, so that it sees an answer that was just committed. */
  async find(apiKey: string, operation: OperationName, key: string): Promise<KeptAnswer | undefined> {
    const [kept] = await this.dataSource.query<KeptAnswer[]>(
      'SELECT fingerprint, answer FROM idempotency_keys WHERE api_key = $1 AND operation = $2 AND key = $3',
      [apiKey, operation, key],
    );
    return kept;
  }
}
