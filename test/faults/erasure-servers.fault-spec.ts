import { eventually } from '@app/testing/eventually';
import { rowsWith } from '@app/testing/database/rows-with';
import { Caller } from './harness/caller';
import { Cluster, REQUEST_TIMEOUT_MS } from './harness/cluster';
import { personOf } from './harness/person';
import { Random, seedOfRun } from './harness/random';
import { lasting } from './harness/run-fault';

const ROUNDS = 3;
const CUTS = 20;
const ORGANIZATIONS = ['a', 'b'];
const NOTIFICATIONS = 40;
const DOCUMENTS = ['d0', 'd1', 'd2'];
const ACCESS = ['public', 'organizationPrivate', 'restricted'];
/** Between two calls for a document, in milliseconds. An API key has a rate. */
const PAUSE_MS = 100;
/** An attempt without an answer may take effect until then. */
const FINAL_AFTER_MS = REQUEST_TIMEOUT_MS + 1250;

type Fault = 'SIGKILL of the broker' | 'SIGKILL of PostgreSQL' | 'links cut';
const FAULTS: Fault[] = ['SIGKILL of the broker', 'SIGKILL of PostgreSQL', 'links cut'];

const PEOPLE = Array.from({ length: ROUNDS * FAULTS.length }, (_, number) => personOf(number));
/** Every third person is added again in the first organization, when the answer has come. */
const isAddedAgain = (number: number) => number % 3 === 0;

describe('erasures and documents while servers die', () => {
  const seed = seedOfRun();
  const random = new Random(seed);
  let cluster: Cluster;
  let caller: Caller;

  beforeAll(async () => {
    cluster = await Cluster.start(random, { users: 2, writers: 2 });
    caller = new Caller(cluster);
  });
  afterAll(() => cluster?.remove(), 60_000);

  const rows = async () => (await rowsWith(cluster.database.url, 'canary')).sort();
  const count = async (query: string) =>
    (await cluster.sql.query<{ count: number }>(`SELECT count(*)::int ${query}`)).rows[0].count;
  /** No erasure and no event is left. */
  const isAtRest = async () =>
    (await count('FROM users.erasures')) + (await count('FROM notifications.erasures WHERE user_ids IS NOT NULL')) === 0 &&
    (await count('FROM users.outbox')) + (await count('FROM notifications.outbox')) === 0;

  async function store(tenant: number): Promise<void> {
    const userIds = PEOPLE.map(({ userId }) => userId);
    for (const organizationId of ORGANIZATIONS) {
      for (const level of [{}, { folderId: 'folder' }, { documentId: 'd0' }])
        await caller.untilDone('users/add', { organizationId, ...level, users: PEOPLE }, tenant);
      const notify = (n: number) => {
        const person = PEOPLE[n % PEOPLE.length];
        const data = {
          ...{ organizationId, documentId: 'd0', notificationId: `n${n}`, actionUser: person, notifyUsers: [person] },
          displayHeadlineMessageTemplate: 'Hello',
          displayHeadlineMessageTemplateData: { recipientUser: person },
        };
        return caller.untilDone('notifications/add', data, tenant);
      };
      await Promise.all(Array.from({ length: NOTIFICATIONS }, (_, n) => notify(n)));
      await caller.untilDone(
        'notifications/update',
        { organizationId, notifications: [{ id: 'n0', readByUserIds: userIds }] },
        tenant,
      );
    }
  }

  const documentsIn = async (table: string, documentIds: string[]) =>
    (
      await cluster.sql.query<{ row: string }>(
        `SELECT concat_ws(' ', document_id, access, folder_id) AS row FROM ${table} d JOIN ${table.split('.')[0]}.organizations o ON o.id = d.organization
         WHERE o.api_key = $1 AND o.organization_id = 'a' AND document_id = ANY ($2) AND d.version > 0 ORDER BY 1`,
        [cluster.tenants[0]['x-svc-api-key'], documentIds],
      )
    ).rows.map(({ row }) => row);
  const undone: string[] = [];

  /** Sets a document again and again. @returns the last state that was answered 200 */
  async function setUntil(documentId: string, isOver: () => boolean): Promise<string> {
    let last = '';
    for (let number = 0; ; number++) {
      const [access, folderId] = [ACCESS[number % ACCESS.length], `${documentId} folder ${number}`];
      const next = `${documentId} ${access} ${folderId}`;
      let final = 0;
      for (let done = false; !done;) {
        const askedAt = performance.now();
        const { status } = await caller.once('documents/set', { organizationId: 'a', documentId, access, folderId });
        done = status === 200;
        if (done) break;
        if (![0, 503, 504].includes(status)) throw new Error(`documents/set was answered ${status}`);
        if (status !== 503) final = askedAt + FINAL_AFTER_MS;
        await lasting(PAUSE_MS);
        const stored = await eventually(() => documentsIn('users.documents', [documentId]));
        if (last && stored[0] !== last && stored[0] !== next) undone.push(`${last} was answered 200, and ${stored[0]} is there`);
      }
      last = next;
      if (isOver()) return last;
      await lasting(Math.max(PAUSE_MS, final - performance.now()));
    }
  }

  const inject = async (fault: Fault): Promise<void> => {
    await lasting(random.between(5, 1000));
    if (fault === 'links cut')
      for (let cut = 0; cut < CUTS; cut++) {
        random.pick(cluster.links).cut(random.pick(['cut', 'reset']));
        await lasting(random.between(10, 200));
      }
    else {
      const server = fault === 'SIGKILL of the broker' ? cluster.broker : cluster.database;
      await server.order('kill');
      await lasting(random.between(100, 1000));
      await server.order('start');
    }
  };

  it('leave nothing of an erased person, what was stored later, and each document as it was set last', async () => {
    await store(1);
    await eventually(isAtRest);
    const others = await rows();
    await store(0);

    let isOver = false;
    const setting = Promise.all(DOCUMENTS.map((documentId) => setUntil(documentId, () => isOver)));
    const erase = async (number: number) => {
      const { userId } = PEOPLE[number];
      await caller.untilDone('users/data/delete', { userIds: [userId] });
      if (isAddedAgain(number)) await caller.untilDone('users/add', { organizationId: 'a', users: [{ userId, name: 'Again' }] });
    };
    const faults = Array.from({ length: ROUNDS }, () => FAULTS).flat();
    for (const [number, fault] of faults.entries()) await Promise.all([erase(number), inject(fault)]);
    isOver = true;
    const set = await setting;
    await eventually(isAtRest, 120_000).catch(() => undefined);

    const kept = await rows();
    const again = PEOPLE.filter((_, number) => isAddedAgain(number)).map(({ userId }) => userId);
    const isOfAgain = (row: string) =>
      /^(users\.(users|organization_members)|notifications\.(complete_)?members) /.test(row) &&
      again.some((userId) => row.includes(userId));
    const left = kept.filter((row) => !others.includes(row) && !isOfAgain(row));
    const oldData = kept.filter((row) => !others.includes(row) && /@example|canary \d/i.test(row));
    const users = await caller.untilDone<{ data: { userId: string; name: string }[] }>('users/get', { organizationId: 'a' });
    expect({
      seed,
      atRest: await isAtRest(),
      // A few are enough to see: in thousands nobody finds the seed.
      left: [...left, ...oldData].slice(0, 5),
      lost: others.filter((row) => !kept.includes(row)).slice(0, 5),
      again: users.data.map(({ userId, name }) => [userId, name]),
      undone,
      documents: await documentsIn('users.documents', DOCUMENTS),
      copied: await documentsIn('notifications.document_access', DOCUMENTS),
    }).toEqual({
      seed,
      atRest: true,
      left: [],
      lost: [],
      again: again.map((userId) => [userId, 'Again']),
      undone: [],
      documents: set,
      copied: set,
    });
    caller.report(
      `erasures of ${PEOPLE.length} people and documents/set, SIGKILL of the broker and of PostgreSQL, ${ROUNDS} times each, ${ROUNDS * CUTS} cut links`,
    );
  }, 600_000);
});
