import type { DataSource } from 'typeorm';
import { MEMBERSHIPS_PAGE, type ListMembershipsRequest, type Membership } from '@app/contracts/memberships.list';
import type { RabbitClient } from '@app/rabbitmq/client/rabbit.client';
import { DeliveryContext } from '@app/rabbitmq/delivery/delivery-context';
import { eventually } from '@app/testing/eventually';
import { InsertNotificationsRepository } from '../db/insert-notifications.repository';
import { MembersRepository } from '../db/members.repository';
import { Members, MOST_PARTS, ROWS_OF_QUESTION } from './members';
import { aNotification, testDatabase } from '../../test/notifications';

/** The users service with one user, who answers when the test lets it. */
class Users {
  readonly asked: (string | undefined)[] = [];
  memberships: Membership[] = [];
  /** Questions that are answered; the others wait. */
  answered = Infinity;
  atOnce = 0;
  private running = 0;

  whenReady = () => Promise.resolve(true);

  async call(_: unknown, { afterId }: ListMembershipsRequest): Promise<{ parse(): object }> {
    this.asked.push(afterId);
    const number = this.asked.length;
    this.atOnce = Math.max(this.atOnce, ++this.running);
    const rest = this.memberships.filter(({ id }) => afterId === undefined || id > afterId);
    const page = { memberships: rest.slice(0, MEMBERSHIPS_PAGE), more: rest.length > MEMBERSHIPS_PAGE };
    await eventually(() => number <= this.answered);
    this.running--;
    return { parse: () => page };
  }
}

const documents = (count: number): Membership[] =>
  Array.from({ length: count }, (_, index) => ({
    level: 'document',
    id: `d${String(index).padStart(6, '0')}`,
    version: 1 + index,
  }));

const database = testDatabase();
let dataSource: DataSource;
let users: Users;
let members: Members;

beforeAll(async () => {
  [dataSource] = database.dataSources as [DataSource];
  await new InsertNotificationsRepository(dataSource).insert([aNotification({ notifyAll: true, to: [] })]);
});
beforeEach(() => restart());

function restart(): void {
  users = new Users();
  members = new Members(new MembersRepository(dataSource), users as unknown as RabbitClient);
}

const aContext = (leftMs = 60_000) =>
  new DeliveryContext({
    ...{ apiKey: 'tenant', pattern: 'any', requestId: 'r', messageId: 'm', deadline: Date.now() + leftMs },
    ...{ awaited: true, redelivered: false, attempt: 1 },
  });
/** A read with it waits for as long as any may: less would also be the time of a busy machine. */
const MOST_MS = 2500;
const read = (userId: string, context = aContext()) => members.requireComplete('org', userId, context);
const copied = async (userId: string) => {
  const [{ count }] = await dataSource.query<[{ count: number }]>(
    'SELECT count(*)::int AS count FROM members WHERE user_id = $1 AND added > removed',
    [userId],
  );
  return count;
};
const isComplete = async (userId: string) => (await new MembersRepository(dataSource).find('tenant', 'org', userId)).complete;

describe(Members, () => {
  it('refuses a read for which too much is to be fetched, and the next one goes on', async () => {
    const pages = 3;
    users.memberships = documents(pages * MEMBERSHIPS_PAGE);
    users.answered = 1;
    const context = aContext(MOST_MS);
    await expect(read('busy', context)).rejects.toMatchObject({ status: 'UNAVAILABLE' });
    expect(Date.now()).toBeLessThan(context.deadline!);
    // Of the part that was copied, and of the one that it waited for.
    expect(context.rows).toBe(2 * ROWS_OF_QUESTION + MEMBERSHIPS_PAGE);
    // Users are not known so slowly by chance.
    expect(context.oneTimeRows).toBeUndefined();
    expect([await copied('busy'), await isComplete('busy')]).toEqual([MEMBERSHIPS_PAGE, false]);

    users.answered = Infinity;
    await read('busy');
    expect([await copied('busy'), await isComplete('busy')]).toEqual([pages * MEMBERSHIPS_PAGE, true]);
    const ends = Array.from({ length: pages - 1 }, (_, page) => users.memberships[(page + 1) * MEMBERSHIPS_PAGE - 1].id);
    expect(users.asked).toEqual([undefined, ...ends]);
  });

  it('ends memberships that are wrong in each part, also more than one part of them', async () => {
    users.memberships = documents(2 * MEMBERSHIPS_PAGE);
    await read('moved');
    await dataSource.query('DELETE FROM complete_members');
    restart();
    const all = documents(2 * MEMBERSHIPS_PAGE);
    users.memberships = [all[10], all.at(-1)!];
    await read('moved');
    expect([await copied('moved'), await isComplete('moved')]).toEqual([2, true]);
  });

  it('asks about a user once at a time, for all who read', async () => {
    users.memberships = documents(2 * MEMBERSHIPS_PAGE);
    const contexts = Array.from({ length: 5 }, () => aContext());
    await Promise.all(contexts.map((context) => read('shared', context)));
    expect(users.atOnce).toBe(1);
    expect(users.asked.length).toBeLessThanOrEqual(3);
    // Each of them has held a place.
    for (const { rows } of contexts) expect(rows).toBeGreaterThanOrEqual(ROWS_OF_QUESTION);
    expect(await copied('shared')).toBe(2 * MEMBERSHIPS_PAGE);
  });

  it('has few questions of a tenant on their way, also when their reads are over', async () => {
    users.answered = 0;
    const contexts = Array.from({ length: 100 }, () => aContext(MOST_MS));
    const reads = contexts.map((context, user) => read(`one of many ${user}`, context));
    await Promise.all(reads.map((one) => expect(one).rejects.toMatchObject({ status: 'UNAVAILABLE' })));
    expect(users.asked).toHaveLength(MOST_PARTS.ofKey);
    // Reads for which there was no room have held places, too.
    for (const { rows } of contexts) expect(rows).toBe(ROWS_OF_QUESTION);
    users.answered = Infinity;
    users.memberships = documents(1);
    await read('one of many 99');
    expect(await isComplete('one of many 99')).toBe(true);
  });

  it('expects no question of the next reads of a tenant when this one was short', async () => {
    members.shortMs = Infinity;
    users.memberships = documents(1);
    const context = aContext();
    await read('soon known', context);
    expect(context).toMatchObject({ rows: ROWS_OF_QUESTION + 1, oneTimeRows: ROWS_OF_QUESTION + 1 });
  });

  it('takes no answer for nobody that is older than the read', async () => {
    users.answered = 0;
    const early = read('new');
    await eventually(() => users.asked.length === 1);
    // Added after the first question. Its event has not come yet.
    users.memberships = documents(1);
    const later = read('new');
    users.answered = 1;
    await early;
    expect(await copied('new')).toBe(0);
    users.answered = Infinity;
    await later;
    expect([await copied('new'), await isComplete('new')]).toEqual([1, true]);
  });

  it('asks itself when the question of an earlier read has failed', async () => {
    users.memberships = documents(1);
    const { call } = users;
    const asked: ((error: Error) => void)[] = [];
    users.call = () => new Promise((_, fail) => asked.push(fail));
    const early = read('failed');
    await eventually(() => asked.length === 1);
    const later = read('failed');
    // Until it waits for the first question.
    for (let round = 0; round < 20; round++) await dataSource.query('SELECT 1');
    users.call = call;
    asked[0](new Error('away'));
    await expect(early).rejects.toMatchObject({ status: 'UNAVAILABLE' });
    await later;
    expect(await isComplete('failed')).toBe(true);
  });

  it('begins anew when the first part is too old, and marks nobody as complete by it', async () => {
    users.memberships = documents(MEMBERSHIPS_PAGE + 1);
    users.answered = 1;
    await expect(read('slow', aContext(600))).rejects.toMatchObject({ status: 'UNAVAILABLE' });
    members.fetchMs = 0;
    users.answered = Infinity;
    users.asked.length = 0;
    await expect(read('slow', aContext(600))).rejects.toMatchObject({ status: 'UNAVAILABLE' });
    expect(users.asked.length).toBeGreaterThan(0);
    expect(users.asked.filter((after) => after !== undefined)).toEqual([]);
    expect(await isComplete('slow')).toBe(false);
    members.fetchMs = 60_000;
    await read('slow');
    expect(await isComplete('slow')).toBe(true);
  });

  it('stores no answer that has become old: its user may be erased by now', async () => {
    users.memberships = documents(1);
    members.answerMs = -1;
    await expect(read('frozen')).rejects.toMatchObject({ status: 'UNAVAILABLE' });
    expect([await copied('frozen'), await isComplete('frozen')]).toEqual([0, false]);
    members.answerMs = 60_000;
    await read('frozen');
    expect([await copied('frozen'), await isComplete('frozen')]).toEqual([1, true]);
  });

  it('ends no membership that has begun again since, also with a smaller version', async () => {
    const repository = new MembersRepository(dataSource);
    const [one] = documents(1);
    const add = (version: number) => repository.add('tenant', 'org', one, [{ userId: 'again', version }]);
    await add(7);
    const [known] = await repository.known('tenant', 'org', 'again', { most: 1 });
    // As after a restored users database: the walks of the rebuild forget the versions, and users counts from less.
    await dataSource.query(`DELETE FROM members WHERE user_id = 'again'`);
    await add(3);
    await repository.complete('tenant', 'org', 'again', { memberships: [], wrong: [known] });
    expect(await copied('again')).toBe(1);
  });

  it('marks nobody as complete whose copy was erased after an earlier part', async () => {
    users.memberships = documents(MEMBERSHIPS_PAGE + 1);
    const { call } = users;
    users.call = async (contract, request) => {
      if (request.afterId !== undefined) throw new Error('away');
      return call.call(users, contract, request);
    };
    await expect(read('erased')).rejects.toMatchObject({ status: 'UNAVAILABLE' });
    users.call = call;
    users.memberships = [];
    await dataSource.query(`DELETE FROM members WHERE user_id = 'erased'`);
    await read('erased');
    expect(await isComplete('erased')).toBe(false);
  });
});
