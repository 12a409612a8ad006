import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { connect, type Channel, type ChannelModel } from 'amqplib';
import { Client } from 'pg';
import type { CloudEvent } from '@app/contracts/event';
import { EVENT_TYPES } from '@app/contracts/event-types';
import { QUEUES } from '@app/rabbitmq/topology/topology';
import { eventually } from '@app/testing/eventually';
import { copiedMemberships, sourceMemberships } from '@app/testing/database/memberships';
import { rowsWith } from '@app/testing/database/rows-with';
import type { ServiceProcess } from '@app/testing/system/service-process';
import { System, type Operation } from '@app/testing/system/system';

/** The version of scripts/test-compat.mjs. Without one the same code is on both sides, which tests the procedure. */
const EARLIER = process.env.TEST_EARLIER_ROOT ?? process.cwd();
const EARLIER_TYPES = readFileSync(join(EARLIER, 'libs/contracts/src/event-types.ts'), 'utf8');
const TYPES: readonly string[] = Object.values(EVENT_TYPES);
const UNKNOWN = TYPES.filter((type) => !EARLIER_TYPES.includes(`'${type}'`));
const LETTERS = QUEUES.filter(({ name }) => /\.commands\.(dead|refused|crashed)$/.test(name));
const LIMIT_MS = 60_000;

type Event = CloudEvent<Record<string, unknown>>;

describe('events of two versions in the outboxes', () => {
  let system: System;
  let sql: Client;
  let broker: ChannelModel;
  let channel: Channel;
  let earlier: ServiceProcess[];
  let current: ServiceProcess[];
  const events: Event[] = [];

  beforeAll(async () => {
    system = await System.start();
    sql = new Client({ connectionString: system.databaseUrl });
    await sql.connect();
    broker = await connect(system.amqpUrl);
    channel = await broker.createChannel();
    const { queue } = await channel.assertQueue('', { exclusive: true });
    for (const type of TYPES) await channel.bindQueue(queue, 'events', type);
    const keep = (content: Buffer) => events.push(JSON.parse(content.toString()) as Event);
    await channel.consume(queue, (message) => void (message && keep(message.content)), { noAck: true });
    current = [system.services.users, system.services.notifications];
    earlier = [system.replica('users'), system.replica('notifications')];
    for (const process of earlier) process.root = EARLIER;
  });
  afterAll(async () => {
    await broker?.close();
    await sql?.end();
    for (const process of earlier ?? []) await process.stop('SIGKILL');
    await system?.stop();
  });

  const startAll = (processes: ServiceProcess[]) => Promise.all(processes.map((process) => process.start()));
  const call = async (operation: Operation, data: object) => {
    const { status, body } = await system.call(operation, data);
    expect([operation, data, status, body.error]).toEqual([operation, data, 200, undefined]);
    return body.result!.data;
  };
  const organizationId = 'org';
  const personOf = (name: string) => ({
    userId: `canary ${name}`,
    name: `Canary ${name}`,
    email: `${name.replaceAll(' ', '-')}@example.com`,
  });
  const addUser = async (name: string) => {
    const person = personOf(name);
    const outcomes = await call('users/add', { organizationId, users: [person] });
    expect(outcomes).toMatchObject({ [person.userId]: { success: true } });
  };
  const notify = (notificationId: string, name: string) =>
    call('notifications/add', {
      ...{ organizationId, documentId: 'document', notificationId, actionUser: personOf(name), notifyAll: true },
      ...{ displayHeadlineMessageTemplate: `headline of ${notificationId}`, notifyUsers: [personOf(name)] },
    });

  const SCHEMAS = ['users', 'notifications'];
  /** Until {@link release} no event leaves an outbox. An event that a process publishes from memory stays there, too, and is published again. */
  const hold = async () => {
    await sql.query(`CREATE FUNCTION hold() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'held'; END $$`);
    for (const schema of SCHEMAS)
      await sql.query(`CREATE TRIGGER held BEFORE DELETE ON ${schema}.outbox FOR EACH ROW EXECUTE FUNCTION hold()`);
  };
  const release = () => sql.query('DROP FUNCTION hold CASCADE');
  const waiting = async () =>
    (
      await sql.query<{ id: string; type: string }>(
        'SELECT id::text, type FROM users.outbox UNION ALL SELECT id::text, type FROM notifications.outbox ORDER BY 2, 1',
      )
    ).rows;
  const untilPublished = async () => {
    const isDone = async () => {
      const { rows } = await sql.query(
        'SELECT FROM users.erasures UNION ALL SELECT FROM notifications.erasures WHERE user_ids IS NOT NULL',
      );
      return rows.length === 0 && (await waiting()).length === 0;
    };
    await eventually(isDone, LIMIT_MS).catch(() => undefined);
    expect({ waiting: await waiting(), done: await isDone() }).toEqual({ waiting: [], done: true });
  };
  const isTold = (type: string, word: string) =>
    events.some((event) => event.type === type && JSON.stringify(event.data).includes(JSON.stringify(word)));
  /** An event leaves the outbox a moment before its listener has it. */
  const told = (type: string, word: string) => eventually(() => isTold(type, word), LIMIT_MS).catch(() => false);
  /** Each change is one that no earlier event has prepared: its event was published before. */
  const prepare = async (round: string) => {
    for (const name of ['removed', 'erased', 'reader']) await addUser(`${name} ${round}`);
    await notify(`deleted ${round}`, `reader ${round}`);
    await notify(`of erased ${round}`, `erased ${round}`);
    await untilPublished();
    for (const name of ['removed', 'erased', 'reader']) await told(EVENT_TYPES.userAdded, `canary ${name} ${round}`);
    for (const id of ['deleted', 'of erased']) await told(EVENT_TYPES.notificationAdded, `${id} ${round}`);
  };
  const change = async (round: string) => {
    const deleted = await call('notifications/delete', { organizationId, notificationIds: [`deleted ${round}`] });
    expect(deleted).toMatchObject({ [`deleted ${round}`]: { success: true } });
    const removed = await call('users/delete', { organizationId, userIds: [`canary removed ${round}`] });
    expect(removed).toMatchObject({ [`canary removed ${round}`]: { success: true } });
    await call('documents/set', { organizationId, documentId: round, access: 'public' });
    await call('users/data/delete', { userIds: [`canary erased ${round}`] });
  };
  const expectChanged = async (round: string, from: number) => {
    const expected = Object.entries({
      [EVENT_TYPES.notificationDeleted]: `deleted ${round}`,
      [EVENT_TYPES.userRemoved]: `canary removed ${round}`,
      [EVENT_TYPES.documentChanged]: round,
      [EVENT_TYPES.userErased]: `canary erased ${round}`,
      [EVENT_TYPES.userDataDeleted]: `canary erased ${round}`,
    });
    for (const [type, word] of expected) await told(type, word);
    const missing = expected.filter(([type, word]) => !isTold(type, word));
    const added = [EVENT_TYPES.notificationAdded, EVENT_TYPES.userAdded] as string[];
    const again = events
      .slice(from)
      .filter(({ type, data }) => added.includes(type) && / (deleted|removed|erased) /.test(JSON.stringify(data)));
    const read = (userId: string) => call('notifications/get', { organizationId, userId }) as Promise<{ id: string }[]>;
    await eventually(async () => (await read(`canary removed ${round}`)).length === 0, LIMIT_MS).catch(() => undefined);
    const shown = (await read(`canary reader ${round}`)).map(({ id }) => id);
    const letters = await Promise.all(LETTERS.map(async ({ name }) => (await channel.checkQueue(name)).messageCount));
    expect({
      ...{ missing, again, removed: await read(`canary removed ${round}`) },
      ...{ deleted: shown.includes(`deleted ${round}`), others: shown.includes(`of erased ${round}`) },
      erased: await rowsWith(system.databaseUrl, `canary erased ${round}`),
      letters: letters.reduce((sum, count) => sum + count, 0),
    }).toEqual({ missing: [], again: [], removed: [], deleted: false, others: true, erased: [], letters: 0 });
    await eventually(async () => (await copiedMemberships(sql)).join() === (await sourceMemberships(sql)).join(), LIMIT_MS);
  };

  it('are published by processes that know their types, and the others wait for them', async () => {
    await prepare('left');
    const from = events.length;
    await hold();
    await change('left');
    await eventually(async () => new Set((await waiting()).map(({ type }) => type)).size >= 3, LIMIT_MS);
    for (const process of current) await process.stop('SIGKILL');
    const left = (await waiting()).filter(({ type }) => UNKNOWN.includes(type));

    await startAll(earlier);
    await addUser('added by the earlier');
    await notify('by the earlier', 'added by the earlier');
    await release();
    await eventually(async () => (await waiting()).every(({ type }) => UNKNOWN.includes(type)), LIMIT_MS).catch(() => undefined);
    expect(await waiting()).toEqual(left);
    expect(await told(EVENT_TYPES.userAdded, 'canary added by the earlier')).toBe(true);
    expect(await told(EVENT_TYPES.notificationAdded, 'by the earlier')).toBe(true);

    // The rule of docs/compatibility.md: nothing of this version is ordered while a process runs that does not know it.
    if (UNKNOWN.length > 0) for (const process of earlier) expect(await process.stop('SIGTERM')).toBe(0);
    await startAll(current);
    await untilPublished();
    await expectChanged('left', from);
  });

  // Both versions take calls from the same queues, so both must know the operations.
  if (UNKNOWN.length === 0)
    it('are published while both versions change the same tenant', async () => {
      await prepare('beside');
      const from = events.length;
      await hold();
      await change('beside');
      await addUser('added beside');
      await eventually(async () => (await waiting()).length > 0, LIMIT_MS);
      await release();
      await untilPublished();
      expect(await told(EVENT_TYPES.userAdded, 'canary added beside')).toBe(true);
      await expectChanged('beside', from);
    });
});
