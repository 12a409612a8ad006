import { Injectable } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { hasLostRace, violatedConstraint } from '@app/postgres/errors';
import { queryPrepared } from '@app/postgres/connections/query-prepared';
import { ERASE_EVERYWHERE, ERASE_IN_ORGANIZATIONS } from './erase-users.sql';
import type { OperationName } from './idempotency-keys.repository';

export interface NewErasure {
  apiKey: string;
  userIds: readonly string[];
  /** Absent: all organizations of the API key. */
  organizationIds?: readonly string[];
  /** Epoch milliseconds. Nothing becomes visible more than a second after it. */
  deadline?: number;
  idempotency: { operation: OperationName; key: string; fingerprint: Buffer };
}

/**
 * - `begun`: no statement shows anything of the users any more, and what is left of them is certain to be erased. `pairs`: rows of users that were hidden;
 * - `tooMany`: the users are in more than 5000 organizations together. Nothing was changed;
 * - `unknownApiKey`: there is no such key;
 * - `missed`: too late, the key of the answer is taken, or a race was lost. Nothing was changed, and another attempt may succeed.
 */
export type BegunErasure = { outcome: 'begun'; pairs: number } | { outcome: 'tooMany' | 'unknownApiKey' | 'missed' };

@Injectable()
export class ErasuresRepository {
  constructor(private readonly dataSource: DataSource) {}

  /** One statement, and so one commit: hidden users, the erasure that the loop goes on with, and idempotency answer. */
  async begin({ apiKey, userIds, organizationIds, deadline, idempotency }: NewErasure): Promise<BegunErasure> {
    const { operation, key, fingerprint } = idempotency;
    try {
      const [begun] = await queryPrepared<{ known: boolean; too_many: boolean; pairs: number }>(
        this.dataSource,
        organizationIds ? ERASE_IN_ORGANIZATIONS : ERASE_EVERYWHERE,
        [apiKey, userIds, deadline ?? null, operation, key, fingerprint, organizationIds ?? null],
        deadline,
      );
      if (!begun) return { outcome: 'missed' };
      if (!begun.known) return { outcome: 'unknownApiKey' };
      return begun.too_many ? { outcome: 'tooMany' } : { outcome: 'begun', pairs: begun.pairs };
    } catch (error) {
      if (violatedConstraint(error) === 'idempotency_keys_pkey' || hasLostRace(error)) return { outcome: 'missed' };
      throw error;
    }
  }
}
