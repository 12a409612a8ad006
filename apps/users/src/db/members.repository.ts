import { Injectable } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { hasLostRace, violatedConstraint } from '@app/postgres/errors';
import { queryPrepared } from '@app/postgres/query-prepared';
import { ADD_MEMBERS } from './add-members.sql';

/** Where users are added: to the organization itself, or to one folder or document of it and by that to nothing else. */
export type Level = { of: 'organization' } | { of: 'folder' | 'document'; id: string };

/** A user as sent; what was not sent keeps its value. */
export interface NewUser {
  userId: string;
  name?: string;
  email?: string;
  initial?: string;
  /** Whether the initial was made from the name and not sent. */
  initialGenerated: boolean;
}

/** A userId and why it is not stored. */
export type Refused = [userId: string, reason: string];

export interface NewMembers {
  apiKey: string;
  organizationId: string;
  level: Level;
  /** At most one for each userId. */
  users: readonly NewUser[];
  /** Kept in the answer to an Idempotency-Key as it is. */
  refused: Refused[];
  /** Epoch milliseconds; nothing becomes visible later than a second after it. */
  deadline?: number;
  idempotency?: { key: string; fingerprint: Buffer };
}

/**
 * - `stored`: with the users who were not yet at that level;
 * - `unknownApiKey`: nobody has that key;
 * - `missed`: too late, the Idempotency-Key is taken, or a race was lost. Nothing was stored, and another try may succeed.
 */
export type AddedMembers = { outcome: 'stored'; added: string[] } | { outcome: 'unknownApiKey' | 'missed' };

@Injectable()
export class MembersRepository {
  constructor(private readonly dataSource: DataSource) {}

  /** One statement, and so one commit: organization, folder or document when missing, users, memberships and the idempotency answer. */
  async add(members: NewMembers): Promise<AddedMembers> {
    const { apiKey, organizationId, level, users, refused, deadline, idempotency } = members;
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
          JSON.stringify(refused),
          ...(level.of === 'organization' ? [] : [level.id]),
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
}
