import { MEMBERSHIPS_PAGE, type Membership } from '@app/contracts/memberships.list';
import { users, usersOnDatabase } from '../../test/users';

const on = usersOnDatabase();

/** Adds the user to this number of documents, with ids in their order, and ends all memberships but those with an id in `live`. */
async function addToDocuments(count: number, live: readonly string[]): Promise<void> {
  const ids = `SELECT organization, 'd' || lpad(n::text, 6, '0') AS id FROM users, generate_series(1, ${count}) n
    WHERE user_id = 'busy'`;
  await on.dataSource.query(`INSERT INTO documents (organization, document_id) ${ids}`);
  await on.dataSource.query(
    `INSERT INTO document_members (organization, document_id, user_id, removed)
     SELECT organization, id, 'busy', CASE WHEN id = ANY ($1) THEN -1 ELSE 9000000000 END FROM (${ids}) d`,
    [live],
  );
}

async function pages(): Promise<Membership[][]> {
  const found: Membership[][] = [];
  for (let more = true; more;) {
    const page = await on.listMemberships('busy', 'org', { after: found.at(-1)?.at(-1) });
    found.push(page.memberships);
    more = page.more;
  }
  return found;
}

describe('memberships.list', () => {
  it('reads all levels in pages, each of them once', async () => {
    const count = MEMBERSHIPS_PAGE + 7;
    await on.add({ organizationId: 'org', users: users('busy') });
    await on.add({ organizationId: 'org', folderId: 'f', users: users('busy', 'other') });
    await on.add({ organizationId: 'org', folderId: 'e', users: users('busy') });
    const documents = Array.from({ length: count }, (_, index) => `d${String(index + 1).padStart(6, '0')}`);
    await addToDocuments(count, documents);
    const found = await pages();
    expect(found.map(({ length }) => length)).toEqual([MEMBERSHIPS_PAGE, 7 + 3]);
    const names = found.flat().map(({ level, id }) => `${level} ${id}`);
    expect(names).toEqual([...documents.map((id) => `document ${id}`), 'folder e', 'folder f', 'organization ']);
  });

  it('leaves out memberships that have ended, of which it looks at a page at a time', async () => {
    await on.add({ organizationId: 'org', users: users('busy') });
    const live = ['d000001', 'd012000'];
    await addToDocuments(15_000, live);
    const found = await pages();
    expect(found.map((page) => page.map(({ id }) => id))).toEqual([[live[0]], [live[1], '']]);
  });

  it('refuses when its time is over before it has found one', async () => {
    await on.add({ organizationId: 'org', users: users('busy') });
    await addToDocuments(MEMBERSHIPS_PAGE + 1, []);
    const late = on.listMemberships('busy', 'org', { deadline: Date.now() - 1 });
    await expect(late).rejects.toMatchObject({ status: 'UNAVAILABLE' });
  });
});
