import type { PoolClient } from 'pg';
import type { DataSource, QueryRunner } from 'typeorm';
import { GENERIC_PLANS } from '@app/postgres/connections/data-source';
import type { OutboxLimits } from '@app/postgres/outbox/outbox-event';
import { planOf, touchedBy } from '@app/testing/database/plan';
import { TAKE, TAKE_IN_TURNS, takeEvents } from './outbox.repository';
import { connectTestDatabase } from '../../test/users';

const NO_LIMITS = { events: 100, bytes: 1e6, ageMs: 0 };

let dataSource: DataSource;
let close: (() => Promise<void>) | undefined;
let runner: QueryRunner;
let client: PoolClient;

beforeEach(async () => {
  ({ dataSource, close } = await connectTestDatabase());
  runner = dataSource.createQueryRunner();
  client = (await runner.connect()) as PoolClient;
  // Filling the table may take long on a slow machine.
  await client.query('SET statement_timeout = 0');
});
afterEach(async () => {
  await runner.release();
  await close?.();
});

it('takes the oldest events, up to the given number', async () => {
  await store(5);
  expect(await taken({ ...NO_LIMITS, events: 2 })).toEqual(['e1', 'e2']);
  expect(await taken(NO_LIMITS)).toEqual(['e3', 'e4', 'e5']);
  expect(await taken(NO_LIMITS)).toEqual([]);
});

it('takes at most the given number of bytes, but at least one event', async () => {
  await store(5);
  expect(await taken({ ...NO_LIMITS, bytes: 1 })).toEqual(['e1']);
  expect(await taken({ ...NO_LIMITS, bytes: 3 })).toEqual(['e2', 'e3']);
  expect(await taken(NO_LIMITS)).toEqual(['e4', 'e5']);
});

it('skips the given events', async () => {
  await store(5);
  const { rows } = await client.query<{ seq: string }>('SELECT seq FROM outbox ORDER BY seq LIMIT 3');
  const waiting = rows.map(({ seq }) => seq);
  expect(await taken({ ...NO_LIMITS, events: 1 }, client, waiting)).toEqual(['e4']);
  expect(await taken(NO_LIMITS, client, waiting)).toEqual(['e5']);
  expect(await taken(NO_LIMITS)).toEqual(['e1', 'e2', 'e3']);
});

it('skips events that another relay has locked', async () => {
  await store(5);
  const other = dataSource.createQueryRunner();
  await other.startTransaction();
  expect(await taken({ ...NO_LIMITS, events: 2 }, (await other.connect()) as PoolClient)).toEqual(['e1', 'e2']);
  expect(await taken(NO_LIMITS)).toEqual(['e3', 'e4', 'e5']);
  await other.rollbackTransaction();
  await other.release();
  expect(await taken(NO_LIMITS)).toEqual(['e1', 'e2']);
});

it('lets API keys take turns', async () => {
  await store(5);
  await store(2, 'late');
  const limits = { ...NO_LIMITS, turnsAmong: 100 };
  expect(await taken({ ...limits, events: 2 })).toEqual(['e1', 'late1']);
  const { rows } = await client.query<{ seq: string }>(`SELECT seq FROM outbox WHERE organization_id = 'e2'`);
  expect(await taken({ ...limits, events: 2 }, client, [rows[0].seq])).toEqual(['e3', 'late2']);
  expect(await taken({ ...limits, turnsAmong: 1 })).toEqual(['e2']);
  expect(await taken(limits)).toEqual(['e4', 'e5']);
});

it('lets relays take different events, also in turns', async () => {
  await store(5);
  await store(2, 'late');
  const other = dataSource.createQueryRunner();
  await other.startTransaction();
  const limits = { ...NO_LIMITS, events: 2, turnsAmong: 100 };
  expect(await taken(limits, (await other.connect()) as PoolClient)).toEqual(['e1', 'late1']);
  expect(await taken(limits)).toEqual(['e2', 'late2']);
  await other.rollbackTransaction();
  await other.release();
  expect(await taken(limits)).toEqual(['e1', 'late1']);
});

it('says whether there may be more', async () => {
  await store(5);
  const more = async (limits: object) => (await takeEvents(client, { ...NO_LIMITS, ...limits })).more;
  expect(await more({ events: 2 })).toBe(true);
  expect(await more({ bytes: 1 })).toBe(true);
  expect(await more({})).toBe(false);
  expect(await more({})).toBe(false);
});

it('leaves events of a type that it does not know to a process that does', async () => {
  await store(2);
  await client.query(`UPDATE outbox SET type = 'user.praised.v1' WHERE organization_id = 'e1'`);
  expect(await taken(NO_LIMITS)).toEqual(['e2']);
  const { rows } = await client.query<{ type: string }>('SELECT type FROM outbox');
  expect(rows).toEqual([{ type: 'user.praised.v1' }]);
});

it('reads only the rows that it takes, even with a plan from when the table was empty', async () => {
  for (const [name, value] of Object.entries(GENERIC_PLANS)) await client.query(`SET ${name} = ${value}`);
  await client.query(`PREPARE take AS ${TAKE.text}`);
  await planOf(runner, `EXECUTE take (100, 1000000, '{user.added.v1}')`);
  await store(20_000);
  const nodes = await planOf(runner, `EXECUTE take (100, 1000000, '{user.added.v1}')`);
  expect(Math.max(...nodes.map(touchedBy))).toBe(100);
});

it('looks at no more rows than API keys take turns among', async () => {
  for (const [name, value] of Object.entries(GENERIC_PLANS)) await client.query(`SET ${name} = ${value}`);
  const execute = `EXECUTE take (100, 1000000, '{user.added.v1}', '{}', 2000)`;
  await client.query(`PREPARE take AS ${TAKE_IN_TURNS.text}`);
  await planOf(runner, execute);
  await store(20_000);
  expect(Math.max(...(await planOf(runner, execute)).map(touchedBy))).toBe(2000);
});

/** Stores events with data of two bytes each, about organizations with the name of the prefix and a number. */
async function store(count: number, prefix = 'e'): Promise<void> {
  await client.query(
    `INSERT INTO outbox (type, api_key, organization_id, data) SELECT 'user.added.v1', $2::text, $2::text || n, '{}' FROM generate_series(1, $1::int) n`,
    [count, prefix],
  );
}

async function taken(limits: OutboxLimits, by = client, without: string[] = []): Promise<string[]> {
  return (await takeEvents(by, limits, without)).events.map(({ organizationId }) => organizationId);
}
