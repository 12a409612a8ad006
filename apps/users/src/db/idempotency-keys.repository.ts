import { Injectable } from '@nestjs/common';
import { DataSource } from 'typeorm';

/** Operation name of users/add in the idempotency keys. */
export const OPERATION = 'users.add';

/** An hour more than promised, because created_at is the start of the statement. */
export const KEEP_HOURS = 25;

export interface KeptAnswer {
  fingerprint: Buffer;
  answer: unknown;
}

/** First answers by Idempotency-Key. The statement with the effect writes them, and deletes expired ones. */
@Injectable()
export class IdempotencyKeysRepository {
  constructor(private readonly dataSource: DataSource) {}

  /** The first use of a key. A separate statement, so that it sees an answer that was just committed. */
  async find(apiKey: string, key: string): Promise<KeptAnswer | undefined> {
    const [kept] = await this.dataSource.query<KeptAnswer[]>(
      'SELECT fingerprint, answer FROM idempotency_keys WHERE api_key = $1 AND operation = $2 AND key = $3',
      [apiKey, OPERATION, key],
    );
    return kept;
  }
}
