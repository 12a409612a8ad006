import type { DataSource, QueryRunner } from 'typeorm';
import { deleteBy } from '@app/postgres/retention/deletion-loop';
import { eventually } from '@app/testing/eventually';
import { KEEP_DELETED_MS } from '../src/db/deleted-notification';
import { DeleteNotificationsRepository } from '../src/db/delete-notifications.repository';
import type { Budgets } from '../src/db/inbox.sql';
import { InsertNotificationsRepository } from '../src/db/insert-notifications.repository';
import { MembersRepository } from '../src/db/members.repository';
import { ReadingsRepository } from '../src/db/readings.repository';
import { DAY_MS, DELETE_OLD_READINGS, deleteOlderThan, FREE_IDS } from '../src/db/retention.repository';
import { LEVELS, Model } from './inbox-model';
import { AROUND_MS, type Step } from './inbox-steps';
import { aNotification, connectTestDatabase } from './notifications';

/** So few that most pages and counts end early. */
export const FEW: Budgets = {
  count: 5,
  named: 5,
  toAll: 5,
  inDocument: 4,
  inDocuments: 5,
  marked: 5,
  pageAtFirst: 2,
  page: 5,
  lookAt: 2,
};

interface HeldDatabase {
  dataSource: DataSource;
  /** The moment up to which everything is settled, which an open transaction holds, in epoch milliseconds. */
  settled: number;
}

/** The same for all tests of a file. */
export function heldDatabase(): HeldDatabase {
  const held = {} as HeldDatabase;
  let database: Awaited<ReturnType<typeof connectTestDatabase>>;
  let open: QueryRunner;
  beforeAll(async () => {
    database = await connectTestDatabase();
    [held.dataSource] = database.dataSources;
    open = held.dataSource.createQueryRunner();
    await open.query('SET idle_in_transaction_session_timeout = 0');
    await open.startTransaction();
    const [{ start }] = (await open.query(`SELECT floor(extract(epoch FROM now()) * 1000)::bigint AS start`)) as {
      start: string;
    }[];
    held.settled = Number(start) - 1;
    await eventually(() => Date.now() > held.settled + 2 * AROUND_MS);
  });
  afterAll(async () => {
    await open.rollbackTransaction();
    await open.release();
    await database.close();
  });
  return held;
}

/** Executes steps on one organization, and on its model. */
export class InboxProgram {
  readonly model: Model;
  private readonly members: MembersRepository;
  private version = 0;

  constructor(
    private readonly database: HeldDatabase,
    private readonly organizationId: string,
  ) {
    this.model = new Model(database.settled);
    this.members = new MembersRepository(database.dataSource);
  }

  async execute(steps: readonly Step[]): Promise<void> {
    // Creates the organization: without it there is nobody whose mark is kept.
    if (this.version === 0) await this.members.add(...this.both, LEVELS[0], [{ userId: 'somebody', version: 0 }]);
    for (const one of steps) {
      this.version++;
      await this.executeOne(one);
    }
  }

  private get both() {
    return ['tenant', this.organizationId] as const;
  }

  private async executeOne(one: Step): Promise<void> {
    const { model, members, both, organizationId, version } = this;
    const { dataSource, settled } = this.database;
    const tenant = { apiKey: 'tenant', organizationId };
    if (one.act === 'add') {
      const { id, document, location, to, notifyAll, at } = one;
      const timestamp = settled + at;
      if (!model.add({ id, timestamp, document, location, to, notifyAll })) return;
      await new InsertNotificationsRepository(dataSource).insert([
        aNotification({ ...tenant, id, documentId: document, locationId: location, to, notifyAll }),
      ]);
      for (const [table, column] of [
        ['notifications', 'id'],
        ['recipients', 'notification_id'],
      ])
        await dataSource.query(
          `UPDATE ${table} SET "timestamp" = $1 WHERE ${column} = $2 AND organization = (SELECT id FROM organizations WHERE organization_id = $3)`,
          [timestamp, id, organizationId],
        );
    } else if (one.act === 'delete') {
      const messageId = `${organizationId} ${version}`;
      await new DeleteNotificationsRepository(dataSource).delete({ ...tenant, messageId, ids: [one.id] });
      model.delete(one.id);
    } else if (one.act === 'expire') {
      // A read state is found by the time of its notification.
      await this.makeOlder(100 * DAY_MS, [
        ['notifications', `id = '${one.id}' AND document_id <> ''`],
        ['recipients', `notification_id = '${one.id}'`],
        ['readings', `notification_id = '${one.id}'`],
      ]);
      await deleteOlderThan(dataSource, 90, 1000);
      await deleteBy(dataSource, DELETE_OLD_READINGS, [1000, 90 * DAY_MS]);
      model.expire(one.id);
    } else if (one.act === 'free') {
      await this.makeOlder(KEEP_DELETED_MS + 1000, [['notifications', `document_id = ''`]]);
      await deleteBy(dataSource, FREE_IDS, [1000]);
      model.free();
    } else if ('level' in one) {
      model[one.act](one.user, one.level);
      const change = one.act === 'join' ? members.add.bind(members) : members.remove.bind(members);
      await change(...both, one.level, [{ userId: one.user, version }]);
    } else if (one.act === 'leave') {
      model.leave(one.user);
      await members.leave(...both, [{ userId: one.user, version }]);
    } else if (one.act === 'document') {
      model.setDocument(one.document, one.access, one.folder);
      await members.setDocument(...both, { documentId: one.document, folderId: one.folder, access: one.access, version });
    } else if (one.act === 'mark') {
      const ids = [...new Set(one.pairs.map(({ id }) => id))];
      const done = await new ReadingsRepository(dataSource).updateEach({ ...tenant, ids, pairs: one.pairs });
      expect(done?.updated.sort()).toEqual(ids.filter((id) => model.stored.has(id)).sort());
      for (const { id, userId, read } of one.pairs) model.mark(userId, id, read);
    } else {
      const readUpTo = settled + one.at;
      model.upTo(one.user, readUpTo);
      const readings = new ReadingsRepository(dataSource);
      for (let done = -1; done < readUpTo;)
        done = (await readings.updateUpTo({ ...tenant, userId: one.user, readUpTo }, 1, 2))?.readUpTo ?? Infinity;
    }
  }

  private async makeOlder(ms: number, rows: readonly (readonly [table: string, where: string])[]): Promise<void> {
    for (const [table, where] of rows)
      await this.database.dataSource.query(
        `UPDATE ${table} SET "timestamp" = "timestamp" - $1 WHERE ${where}
           AND organization = (SELECT id FROM organizations WHERE organization_id = $2)`,
        [ms, this.organizationId],
      );
  }
}
