import { randomUUID } from 'node:crypto';
import type { DataSource } from 'typeorm';
import { AccessRepository } from '../src/db/access.repository';
import { ADD_MEMBERS } from '../src/db/add-members.sql';
import { SET_DOCUMENT } from '../src/db/documents.repository';
import { ERASE_EVERYWHERE, ERASE_IN_ORGANIZATIONS } from '../src/db/erase-users.sql';
import { UsersErasureSteps } from '../src/db/erasure-steps';
import type { Level } from '../src/db/level';
import { OrganizationsRepository } from '../src/db/organizations.repository';
import { REMOVE_MEMBERS } from '../src/db/remove-members.sql';

export const LEVELS: Level[] = [{ of: 'organization' }, { of: 'folder', id: 'busy' }, { of: 'document', id: 'busy' }];
export const USERS = Array.from({ length: 20 }, (_, index) => `u${index * 50}`);
/** Statements about other tables have no scan that counts. */
const TABLES_OF_USERS = /\b(users|\w+_members)\b/;

export interface Statement {
  name: string;
  text: string;
  values: unknown[];
}

/** Every read and change of members and documents, as the repositories send it. */
export async function statements(): Promise<Statement[]> {
  const sent: Statement[] = [];
  const asked = {
    query: (text: string, values: unknown[]) => Promise.resolve((sent.push({ name: '', text, values }), [{ left: null }])),
  };
  const access = new AccessRepository(asked as unknown as DataSource);
  const named = async (name: string, call: Promise<unknown>) => {
    await call;
    sent.at(-1)!.name = name;
  };
  const of = { apiKey: 'one', organizationId: 'org' };
  for (const level of LEVELS) {
    await named(`contacts of ${level.of}`, access.contacts({ ...of, level }, { pageSize: 50 }));
    await named(`later contacts of ${level.of}`, access.contacts({ ...of, level }, { pageSize: 50, after: 'u5' }));
    await named(`chosen contacts of ${level.of}`, access.contacts({ ...of, level, userIds: USERS }, { pageSize: 50 }));
  }
  await named('memberships', access.memberships({ ...of, userId: 'u5' }, { limit: 51 }));
  await named('access', access.find('one', 'org', 'busy', 'u5'));
  await named('exists', new OrganizationsRepository(asked as unknown as DataSource).find('one', 'org', 'busy'));
  sent.push({ ...SET_DOCUMENT, values: ['one', 'org', 'busy', 'busy', 'restricted', null, null] });
  for (const level of LEVELS) {
    const id = level.of === 'organization' ? [] : [level.id];
    const ended = ['one', 'org', USERS, null, 'users.delete', randomUUID(), Buffer.alloc(1), ...id, null];
    sent.push({ ...REMOVE_MEMBERS[level.of], values: ended });
    const none = USERS.map(() => null);
    const key = [randomUUID(), Buffer.alloc(1), '[]', USERS.map((_, place) => place)];
    const added = ['one', 'org', USERS, none, none, none, USERS.map(() => true), null, ...key, ...id, null];
    sent.push({ ...ADD_MEMBERS[level.of], values: added });
  }
  for (const statement of [ERASE_EVERYWHERE, ERASE_IN_ORGANIZATIONS]) {
    const erased = ['one', USERS.slice(1), null, 'users.erase', randomUUID(), Buffer.alloc(1), ['org', 'unknown']];
    sent.push({ ...statement, values: erased });
  }
  sent.push(...(await erasureSteps(USERS.slice(1))));
  return sent;
}

/** The statements of one step of an erasure. */
export async function erasureSteps(userIds: string[]): Promise<Statement[]> {
  const sent: Statement[] = [];
  const erasure = {
    id: '1',
    api_key: 'one',
    user_ids: userIds,
    organization_ids: null,
    version: '9000',
    requested_at: '2026-01-31',
    outbox_seq: null,
  };
  const answers = [
    [{ since: null }],
    [{ ...erasure, at_user_id: '', at_organization: '0' }],
    [{ users: userIds.map((id) => ({ organization: '1', user_id: id, is_hidden: true })), looked_to: null }],
  ];
  const query = (text: string, values: unknown[] = []) => {
    sent.push({ name: `step ${sent.length} of an erasure`, text, values });
    return Promise.resolve(answers.shift() ?? [{ more: false }]);
  };
  const transaction = (work: (manager: object) => unknown) => work({ query });
  await new UsersErasureSteps({ transaction } as unknown as DataSource, () => undefined).step();
  return sent.filter(({ text }) => TABLES_OF_USERS.test(text));
}
