import { createDataSource } from '@app/postgres/connections/data-source';
import { migrate } from '@app/postgres/migrations/migrate';
import { LETTER_QUEUES } from '@app/rabbitmq-admin/dead-letters/letter-queue';
import { DEAD, deadLetterBox, many } from '@app/testing/broker/dead-letter-box';
import { createEmptyDatabase, type TestDatabase } from '@app/testing/database/server-databases';
import type { FastifyRequest } from 'fastify';
import type { DataSource } from 'typeorm';
import { AuditRepository } from '../db/audit.repository';
import { DATABASE } from '../db/schema';
import { AuditedForm } from './audited';
import { Letters, MOST_LETTERS } from './letters';

const QUEUE = LETTER_QUEUES.find(({ name }) => name === DEAD)!;
const REQUEST = { session: { operator: 'Ada', id: '' }, ip: '::1' } as FastifyRequest;

const box = deadLetterBox();
let letters: Letters;
let database: TestDatabase;
let dataSource: DataSource;
let audit: AuditRepository;

beforeAll(async () => {
  database = await createEmptyDatabase();
  await migrate({ adminUrl: database.url, ...DATABASE });
  expect(await migrate({ adminUrl: database.url, ...DATABASE })).toEqual([]);
  dataSource = await createDataSource({ name: 'test', url: database.url, poolSize: 2, ...DATABASE }).initialize();
  audit = new AuditRepository(dataSource);
  letters = new Letters({ url: box.broker.url, name: 'test' }, []);
});
beforeEach(() => box.bury([['a'], ['b'], ['c', { 'x-routing-key': 'nothing.v1' }]]));
afterAll(async () => {
  await dataSource?.destroy();
  await database?.drop();
});

const listed = async () => (await letters.list(QUEUE)).letters.map(({ id }) => id);
/** Marks of the letters with these ids. */
async function marked(...ids: string[]): Promise<Set<string>> {
  const { letters: all } = await letters.list(QUEUE);
  return new Set(all.flatMap(({ id, mark }) => (ids.includes(id) ? mark : [])));
}
const form = (of = audit) => new AuditedForm(of, REQUEST, 'test');

it('replays and drops the chosen letters, and writes who did what with which outcome', async () => {
  expect((await letters.counts()).find(({ queue }) => queue === QUEUE)?.count).toBe(3);
  const replayed = form();
  await letters.act('replay', QUEUE, (await marked('a', 'c')).add('digest.unknown'), replayed);
  expect(await audit.batch(replayed.batch)).toEqual([
    expect.objectContaining({
      operator: 'Ada',
      address: '::1',
      target: `${DEAD} a`,
      outcome: 'replayed',
      endedAt: expect.any(Date),
    }),
    expect.objectContaining({ target: `${DEAD} c`, outcome: 'kept: its operation does not belong to this service' }),
    expect.objectContaining({ target: `${DEAD} unknown`, outcome: 'not found among the first 100, or not reached in 20 s' }),
  ]);
  expect(await listed()).toEqual(['b', 'c']);
  const b = await marked('b');
  await letters.act('drop', QUEUE, b, form());
  expect(await listed()).toEqual(['c']);
  expect((await audit.page(1))[0]).toMatchObject({ target: `${DEAD} b`, outcome: 'dropped' });
  await expect(letters.act('drop', QUEUE, b, form())).rejects.toMatchObject({ status: 404 });
});

it('takes no other letter of the same id, which its publisher has chosen', async () => {
  await box.empty();
  await box.bury([
    ['same', {}, {}, { of: 'one' }],
    ['same', {}, {}, { of: 'another' }],
    ['same', { 'x-api-key': 'other' }],
  ]);
  const { letters: three } = await letters.list(QUEUE);
  expect(new Set(three.map(({ mark }) => mark)).size).toBe(3);
  expect((await letters.read(QUEUE, three[1].mark, form())).message.content.toString()).toContain('another');
  await letters.act('drop', QUEUE, new Set([three[1].mark]), form());
  expect((await letters.list(QUEUE)).letters.map(({ mark }) => mark)).toEqual([three[0].mark, three[2].mark]);
});

it('says how many letters there are', async () => {
  await box.empty();
  await box.bury(many(MOST_LETTERS + 20));
  const { letters: first, total } = await letters.list(QUEUE);
  expect([first.length, total]).toEqual([MOST_LETTERS, MOST_LETTERS + 20]);
});

it('finds one letter with its body, and writes who reads it', async () => {
  const [b] = await marked('b');
  const reading = form();
  expect((await letters.read(QUEUE, b, reading)).message.content.toString()).toContain('organizationId');
  expect(await audit.batch(reading.batch)).toEqual([
    expect.objectContaining({ operator: 'Ada', target: `${DEAD} b`, outcome: 'shown' }),
  ]);
  await expect(letters.read(QUEUE, 'unknown', form())).rejects.toMatchObject({ status: 404 });
  expect(await listed()).toEqual(['a', 'b', 'c']);
});

it('does nothing without a line of audit', async () => {
  const away = createDataSource({ name: 'away', url: 'postgres://u:p@127.0.0.1:1/x', poolSize: 1, ...DATABASE });
  const failing = form(new AuditRepository(away));
  await expect(letters.act('drop', QUEUE, await marked('a'), failing)).rejects.toMatchObject({
    status: 503,
    message: expect.stringMatching(new RegExp(`nothing was done with ${DEAD} a\\.$`)) as string,
  });
  const [b] = await marked('b');
  await expect(letters.read(QUEUE, b, failing)).rejects.toMatchObject({ status: 503 });
  expect(await listed()).toEqual(['a', 'b', 'c']);
});
