import { hash } from 'node:crypto';
import type { AddedUser, AddUsersResult, UserEntry } from '@app/contracts/users.add';
import type { Refused } from '../../db/members.repository';
import { Places } from '../places';

/** Data from which, with the request, the answer is made. */
export interface AddUsersOutcome {
  /** Ids of users who were not at that level before. */
  added: string[];
  refused: Refused[];
}

/** An {@link AddUsersOutcome} as it is stored with an Idempotency-Key: users by their places. A new field must be optional. */
export interface KeptOutcome {
  added: (number | string)[];
  refused: [user: number | string, reason: string][];
}

/** The outcome of the first call, for the repetition of its request. */
export function outcomeOf(entries: readonly UserEntry[], { added, refused }: KeptOutcome): AddUsersOutcome {
  const places = placesOf(entries);
  return {
    added: added.map((user) => places.userId(user)),
    refused: refused.map(([user, reason]) => [places.userId(user), reason]),
  };
}

export const placesOf = (entries: readonly UserEntry[]): Places => new Places(entries.map(({ userId }) => userId));

/** The answer, keyed by userId. */
export function answerOf(entries: readonly UserEntry[], { added, refused }: AddUsersOutcome): AddUsersResult {
  const isNew = new Set(added);
  const reasons = new Map(refused);
  // Without a prototype, because `__proto__` is a valid userId.
  const data = Object.create(null) as Record<string, AddedUser>;
  for (const { userId } of entries) {
    const reason = reasons.get(userId);
    data[userId] = {
      success: reason === undefined,
      id: publicId(userId),
      message: reason ?? (isNew.has(userId) ? 'User added.' : 'User updated.'),
    };
  }
  return { status: 'success', message: summary(Object.keys(data).length, refused.length), data };
}

/** An identifier that published clients expect, not a secret. */
const publicId = (userId: string): string => hash('md5', userId);

const summary = (users: number, failed: number): string =>
  failed === 0 ? 'User(s) processed successfully.' : `User(s) processed, ${failed} of ${users} failed.`;
