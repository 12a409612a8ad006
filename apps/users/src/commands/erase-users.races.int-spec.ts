import { EVENT_TYPES } from '@app/contracts/event-types';
import type { AddUsersRequest } from '@app/contracts/users.add';
import type { OutboxEvent } from '@app/postgres/outbox/outbox-event';
import { messages, users, usersOnDatabase } from '../../test/users';

const on = usersOnDatabase();

const AMY = { userId: 'amy', name: 'Canary Amy', email: 'canary@example.com' };
const FIRST: AddUsersRequest = { organizationId: 'org', documentId: 'd', users: [AMY] };
const erase = (organizationIds?: string[]) => on.erase({ userIds: ['amy'], organizationIds });

interface Heard {
  documentId?: string;
  users: { userId: string; name?: string; version?: number; membership?: number }[];
  version: number;
  republished?: boolean;
}

/** All that a listener who follows the rules of docs/messages.md knows of the user in the end. */
function known(events: readonly OutboxEvent[]): { documents: string[]; name?: string; version: number } {
  let erased = -1;
  let left = 0;
  let details: { version: number; name?: string } = { version: 0 };
  const [added, removed] = [new Map<string, number>(), new Map<string, number>()];
  for (const { type, data } of events) {
    const { documentId = '', users: changed = [], version } = JSON.parse(data) as Heard;
    if (type === EVENT_TYPES.userErased) {
      erased = Math.max(erased, version);
      const isMember = [...added.values()].some((membership) => membership > erased);
      if (!isMember || details.version <= erased) details = { version: 0 };
    }
    for (const { userId, name, version: ofDetails = 0, membership = 0 } of changed) {
      if (userId !== 'amy') continue;
      if (type === EVENT_TYPES.userAdded && membership > erased) {
        added.set(documentId, Math.max(membership, added.get(documentId) ?? 0));
        if (ofDetails > Math.max(erased, details.version)) details = { version: ofDetails, name };
      } else if (type === EVENT_TYPES.userRemoved && documentId)
        removed.set(documentId, Math.max(ofDetails, removed.get(documentId) ?? 0));
      else if (type === EVENT_TYPES.userRemoved) left = Math.max(left, ofDetails);
    }
  }
  const isLive = ([id, version]: [string, number]) => version > Math.max(erased, left, removed.get(id) ?? 0);
  return {
    documents: [...added]
      .filter(isLive)
      .flatMap(([id]) => id)
      .sort(),
    ...details,
  };
}

/** Compares all that the service and listeners know in the end, in every order of the events. */
async function expectEverywhere(expected: { documents: string[]; name?: string }): Promise<void> {
  await on.erased();
  const { memberships } = await on.listMemberships('amy');
  expect(memberships.map(({ id }) => id)).toEqual(expected.documents);
  const [amy] = await on.dataSource.query<{ name: string | null; version: string }[]>(
    `SELECT name, version FROM users WHERE user_id = 'amy'`,
  );
  expect(amy?.name ?? undefined).toBe(expected.name);
  const isMember = expected.documents.length > 0;
  const everywhere = { documents: expected.documents, name: expected.name, version: isMember ? Number(amy?.version) : 0 };
  expect([known(on.events), known(on.events.toReversed())]).toEqual([everywhere, everywhere]);
}

/** Adds the user for the first time, while an erasure begins and is answered. */
async function addBesideErasure({
  organizationIds,
  apiKey,
}: { organizationIds?: string[]; apiKey?: string } = {}): Promise<void> {
  await on.add({ organizationId: 'org', users: users('grace') }, { apiKey });
  // Versions of earlier days tell an erasure which users it need not look at.
  await on.dataSource.query(`INSERT INTO version_times SELECT (now() AT TIME ZONE 'UTC')::date - 2, nextval('versions'), 0`);
  // The call has its versions, and waits for the document.
  await on.holding(`INSERT INTO documents (organization, document_id) SELECT id, 'd' FROM organizations`, async (rival) => {
    const added = on.add(FIRST, { apiKey });
    await rival.waiting(1);
    await erase(organizationIds);
    await rival.query('COMMIT');
    await added;
  });
}

it.each<[string, () => Promise<unknown>]>([
  ['no further call', () => Promise.resolve()],
  ['the same call again', () => on.add(FIRST)],
  ['a change of the e-mail address', () => on.add({ ...FIRST, users: [{ ...AMY, email: 'new@example.com' }] })],
])('keeps a user whom an earlier call adds for the first time and commits later: %s', async (_, then) => {
  await addBesideErasure();
  await then();
  await expectEverywhere({ documents: ['d'], name: 'Canary Amy' });
  expect(await on.values('SELECT user_id FROM users')).toEqual(['amy', 'grace']);
});

it('keeps such a user whom a later call adds to another document, too', async () => {
  await addBesideErasure({ organizationIds: ['org', 'unknown'] });
  await on.add({ ...FIRST, documentId: 'e', users: users('amy') });
  await expectEverywhere({ documents: ['d', 'e'], name: 'Canary Amy' });
});

it('does not bring back what was removed before the erasure goes on', async () => {
  await addBesideErasure();
  await on.add({ ...FIRST, documentId: 'e', users: users('amy') });
  await on.delete({ organizationId: 'org', documentId: 'd', userIds: ['amy'] });
  await expectEverywhere({ documents: ['e'], name: 'Canary Amy' });
});

it('erases such a user who has left by then', async () => {
  await addBesideErasure();
  await on.delete({ organizationId: 'org', userIds: ['amy'] });
  await expectEverywhere({ documents: [] });
  expect(await on.values('SELECT user_id FROM users')).toEqual(['grace']);
});

it.each([{ organizationIds: ['other'] }, { apiKey: 'two' }])('renews nobody who is not erased: %j', async (outside) => {
  await addBesideErasure(outside);
  await on.erased();
  const added = on.events
    .filter(({ type }) => type === EVENT_TYPES.userAdded)
    .map(({ data }) => (JSON.parse(data) as Heard).users);
  expect(added).toMatchObject([[{ userId: 'grace' }], [{ userId: 'amy' }]]);
});

it('gives such a user whose membership was ended newer details for a later one', async () => {
  await addBesideErasure();
  await on.delete({ organizationId: 'org', documentId: 'd', userIds: ['amy'] });
  await on.erased();
  await on.add({ ...FIRST, documentId: 'e', users: users('amy') });
  await expectEverywhere({ documents: ['e'], name: 'Canary Amy' });
});

/** The call gets the row of the user after an erasure, and began before. */
async function addBehindErasure(request: AddUsersRequest): Promise<void> {
  await on.add(FIRST);
  await on.holding(`SELECT FROM users.users WHERE user_id = 'amy' FOR UPDATE`, async (rival) => {
    const calls: Promise<unknown>[] = [erase()];
    await rival.waiting(1);
    calls.push(on.add(request));
    await rival.waiting(2);
    await rival.query('COMMIT');
    await Promise.all(calls);
  });
}

it('tells listeners nothing that was hidden while a call waited', async () => {
  await addBehindErasure({ ...FIRST, documentId: 'e', users: users('amy') });
  await expectEverywhere({ documents: ['e'] });
});

it('leaves listeners nothing that was hidden while a call waited of a user who has left by then', async () => {
  await addBehindErasure({ ...FIRST, documentId: 'e', users: users('amy') });
  await on.delete({ organizationId: 'org', userIds: ['amy'] });
  await expectEverywhere({ documents: [] });
});

it('leaves listeners no new details of an erased user', async () => {
  await addBehindErasure({ ...FIRST, users: [{ ...AMY, name: 'New' }] });
  await expectEverywhere({ documents: [] });
});

it('marks an addition that it repeats: listeners send no second welcome', async () => {
  await on.add(FIRST);
  await erase();
  await on.add(FIRST);
  await on.erased();
  const added = on.events.filter(({ type }) => type === EVENT_TYPES.userAdded);
  expect(added.map(({ data }) => (JSON.parse(data) as Heard).republished)).toEqual([undefined, undefined, true]);
});

it('tells listeners of new details whose call has begun before the erasure', async () => {
  await on.add({ ...FIRST, users: [...users('aaa'), AMY] });
  await on.holding(`SELECT FROM users.users WHERE user_id = 'aaa' FOR UPDATE`, async (rival) => {
    const changed = on.add({ ...FIRST, users: [...users('aaa'), { ...AMY, name: 'New' }] });
    await rival.waiting(1);
    await erase();
    await on.add({ ...FIRST, users: users('amy') }, { elsewhere: true });
    await rival.query('COMMIT');
    await changed;
  });
  await expectEverywhere({ documents: ['d'], name: 'New' });
});

it.each([
  ['', 'User updated.'],
  [`UPDATE users SET left_version = nextval('versions') WHERE user_id = 'amy'`, 'User added.'],
])('tells listeners of the details of the later one of two calls that add an erased user again %s', async (then, message) => {
  await on.add({ ...FIRST, users: [AMY, ...users('grace')] });
  await erase();
  await on.erased();
  const other = `
    WITH added AS (
      INSERT INTO users (organization, user_id, name, initial_generated, version)
      SELECT id, 'amy', 'Other', true, nextval('versions') FROM organizations RETURNING organization
    )
    INSERT INTO document_members (organization, document_id, user_id) SELECT organization, 'd', 'amy' FROM added`;
  await on.holding(`${other}; ${then}`, async (rival) => {
    const added = on.add(FIRST);
    await rival.waiting(1);
    await rival.query('COMMIT');
    expect(messages(await added)).toEqual({ amy: message });
  });
  await expectEverywhere({ documents: ['d'], name: 'Canary Amy' });
});

it('renews more memberships than one statement does', async () => {
  await on.add({ organizationId: 'org', users: users('grace') });
  await erase();
  await on.dataSource.query(`
    WITH amy AS (
      INSERT INTO users (organization, user_id, name, initial_generated) SELECT id, 'amy', 'Canary Amy', true FROM organizations RETURNING organization
    ), known AS (
      INSERT INTO documents (organization, document_id) SELECT organization, lpad(n::text, 4, '0') FROM amy, generate_series(1, 600) n RETURNING *
    )
    INSERT INTO document_members (organization, document_id, user_id, added) SELECT organization, document_id, 'amy', 0 FROM known`);
  const documents = await on.values('SELECT document_id FROM document_members');
  expect(documents).toHaveLength(600);
  await on.erased();
  while ((await on.values('SELECT type FROM outbox')).length > 0) await on.published();
  const expected = { documents, name: 'Canary Amy' };
  expect([known(on.events), known(on.events.toReversed())]).toMatchObject([expected, expected]);
});
