import { Injectable } from '@nestjs/common';
import { DataSource } from 'typeorm';

/** Operation under which users/add keeps its idempotency keys. */
export const OPERATION = 'users.add';

/** An hour more than promised: the clock of a row starts with its statement. */
export const KEEP_HOURS = 25;

export interface KeptAnswer {
  fingerprint: Buffer;
  answer: unknown;
}

/** First answers by Idempotency-Key. They are written, and deleted when they have expired, by the statement that has the effect. */
@Injectable()
export class IdempotencyKeysRepository {
  constructor(private readonly dataSource: DataSource) {}

  /** What the key was first used for. A statement of its own sees an answer that was committed a moment ago. */
  async find(apiKey: string, key: string): Promise<KeptAnswer | undefined> {
    const [kept] = await this.dataSource.query<KeptAnswer[]>(
      'SELECT fingerprint, answer FROM idempotency_keys WHERE api_key = $1 AND operation = $2 AND key = $3',
      [apiKey, OPERATION, key],
    );
    return kept;
  }
}
