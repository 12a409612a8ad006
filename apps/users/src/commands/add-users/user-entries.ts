import { LIMITS, textProblem, type Check } from '@app/contracts/fields';
import type { UserEntry } from '@app/contracts/users.add';
import type { NewUser, Refused } from '../../db/members.repository';
import { initialOf } from './initial';

export interface SortedEntries {
  /** At most one for each userId. */
  accepted: NewUser[];
  refused: Refused[];
}

/** Makes one entry of those with the same userId, in which the later values win, and separates valid entries from invalid ones. */
export function sortEntries(entries: readonly UserEntry[]): SortedEntries {
  const merged = new Map<string, UserEntry>();
  for (const entry of entries) {
    const before = merged.get(entry.userId);
    merged.set(entry.userId, before ? overwrite(before, entry) : entry);
  }
  const accepted: NewUser[] = [];
  const refused: Refused[] = [];
  for (const entry of merged.values()) {
    const problem = entryProblem(entry);
    if (problem === undefined) accepted.push(newUser(entry));
    else refused.push([entry.userId, problem]);
  }
  return { accepted, refused };
}

function overwrite(before: UserEntry, { userId, name, email, initial }: UserEntry): UserEntry {
  return { userId, name: name ?? before.name, email: email ?? before.email, initial: initial ?? before.initial };
}

function newUser({ userId, name, email, initial }: UserEntry): NewUser {
  const generated = name === undefined ? undefined : initialOf(name);
  return { userId, name, email, initial: initial ?? generated, initialGenerated: initial === undefined };
}

/** The users as if each was added after the one before it: of those with the same userId the later values win. */
export function mergedUsers(users: readonly NewUser[]): NewUser[] {
  const merged = new Map<string, NewUser>();
  for (const user of users) {
    const before = merged.get(user.userId);
    merged.set(user.userId, before ? mergedUser(before, user) : user);
  }
  return [...merged.values()];
}

function mergedUser(before: NewUser, { userId, name, email, initial, initialGenerated }: NewUser): NewUser {
  const keepsInitial = initialGenerated && (name === undefined || !before.initialGenerated);
  return {
    userId,
    name: name ?? before.name,
    email: email ?? before.email,
    initial: keepsInitial ? before.initial : initial,
    initialGenerated: initialGenerated && before.initialGenerated,
  };
}

const emailForm: Check = (value) =>
  /^[^\s@]+@[^\s@]+$/u.test(value as string) ? undefined : ' must have exactly one @ with text on both sides and no white space';

const CHECKS: readonly ['name' | 'email' | 'initial', Check][] = [
  ['name', textProblem(LIMITS.nameLength, { singleLine: true })],
  ['email', textProblem(LIMITS.nameLength, { singleLine: true })],
  ['email', emailForm],
  ['initial', textProblem(LIMITS.initialLength, { singleLine: true })],
];

/** The first problem of an entry as a sentence; undefined when it is valid. */
export function entryProblem(entry: UserEntry): string | undefined {
  for (const [field, check] of CHECKS) {
    const value = entry[field];
    const problem = value === undefined ? undefined : check(value);
    if (problem !== undefined) return field + problem;
  }
  return undefined;
}
