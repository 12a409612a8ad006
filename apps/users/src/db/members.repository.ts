import { Injectable } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { hasLostRace, violatedConstraint } from '@app/postgres/errors';
import { queryPrepared } from '@app/postgres/connections/query-prepared';
import { activeTrace } from '@app/tracing/tracing';
import { ADD_MEMBERS } from './add-members.sql';
import type { OperationName } from './idempotency-keys.repository';
import type { Level } from './level';
import { REMOVE_MEMBERS } from './remove-members.sql';

/** A user as sent. Fields that were not sent keep their stored value. */
export interface NewUser {
  userId: string;
  name?: string;
  email?: string;
  initial?: string;
  /** Whether the initial was not sent: then it is generated from the name. */
  initialGenerated: boolean;
}

/** A userId and the reason why it is not stored. */
export type Refused = [userId: string, reason: string];

export interface NewMembers {
  apiKey: string;
  organizationId: string;
  level: Level;
  /** At most one user for each userId. */
  users: readonly NewUser[];
  /** Epoch milliseconds. Nothing becomes visible more than a second after it. */
  deadline?: number;
  idempotency?: {
    key: string;
    fingerprint: Buffer;
    /** Kept by the answer instead of the ids of `users`, in their order. */
    places: readonly number[];
    /** Kept unchanged with the answer. */
    refused: readonly [place: number, reason: string][];
  };
}

/**
 * - `stored`: with the ids of users who were not at that level before;
 * - `unknownApiKey`: there is no such key;
 * - `missed`: too late, the Idempotency-Key is taken, or a race was lost. Nothing was stored, and another attempt may succeed.
 */
export type AddedMembers = { outcome: 'stored'; added: string[] } | { outcome: 'unknownApiKey' | 'missed' };

export interface EndedMembers {
  apiKey: string;
  organizationId: string;
  /** The organization: all memberships of the users end, in folders and documents too. */
  level: Level;
  userIds: readonly string[];
  /** Epoch milliseconds. Nothing becomes visible more than a second after it. */
  deadline?: number;
  idempotency: { operation: OperationName; key: string; fingerprint: Buffer };
}

/**
 * - `removed`: with the ids of users who were at that level before;
 * - `unknownApiKey`: there is no such key;
 * - `missed`: too late, the key of the answer is taken, or a race was lost. Nothing was changed, and another attempt may succeed.
 */
export type RemovedMembers = { outcome: 'removed'; removed: string[] } | { outcome: 'unknownApiKey' | 'missed' };

@Injectable()
export class MembersRepository {
  constructor(private readonly dataSource: DataSource) {}

  /** One statement, and so one commit: missing organization, folder or document, users, memberships, events and idempotency answer. */
  async add(members: NewMembers): Promise<AddedMembers> {
    const { apiKey, organizationId, level, users, deadline, idempotency } = members;
    try {
      const [stored] = await queryPrepared<{ added: string[] }>(
        this.dataSource,
        ADD_MEMBERS[level.of],
        [
          apiKey,
          organizationId,
          users.map(({ userId }) => userId),
          users.map(({ name }) => name ?? null),
          users.map(({ email }) => email ?? null),
          users.map(({ initial }) => initial ?? null),
          users.map(({ initialGenerated }) => initialGenerated),
          deadline ?? null,
          idempotency?.key ?? null,
          idempotency?.fingerprint ?? null,
          JSON.stringify(idempotency?.refused ?? []),
          idempotency?.places ?? [],
          ...(level.of === 'organization' ? [] : [level.id]),
          activeTrace(),
        ],
        deadline,
      );
      return stored ? { outcome: 'stored', added: stored.added } : { outcome: 'missed' };
    } catch (error) {
      const constraint = violatedConstraint(error);
      if (constraint === 'organizations_api_key_fkey') return { outcome: 'unknownApiKey' };
      if (constraint === 'idempotency_keys_pkey' || hasLostRace(error)) return { outcome: 'missed' };
      throw error;
    }
  }

  /** One statement, and so one commit: ended memberships, event and idempotency answer. A missing organization is like an empty one. */
  async remove({ apiKey, organizationId, level, userIds, deadline, idempotency }: EndedMembers): Promise<RemovedMembers> {
    const { operation, key, fingerprint } = idempotency;
    try {
      const [ended] = await queryPrepared<{ known: boolean; removed: string[] }>(
        this.dataSource,
        REMOVE_MEMBERS[level.of],
        [
          apiKey,
          organizationId,
          userIds,
          deadline ?? null,
          operation,
          key,
          fingerprint,
          ...(level.of === 'organization' ? [] : [level.id]),
          activeTrace(),
        ],
        deadline,
      );
      if (!ended) return { outcome: 'missed' };
      return ended.known ? { outcome: 'removed', removed: ended.removed } : { outcome: 'unknownApiKey' };
    } catch (error) {
      if (violatedConstraint(error) === 'idempotency_keys_pkey' || hasLostRace(error)) return { outcome: 'missed' };
      throw error;
    }
  }
}
