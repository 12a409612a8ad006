import { createHash } from 'node:crypto';
import type { DataSource, QueryRunner } from 'typeorm';
import { createDataSource } from '@app/postgres/connections/data-source';
import { createTestDatabase } from '@app/testing/database/database';
import { prepareForPlans } from '@app/testing/database/plan';
import type { NewNotification } from '../src/db/insert-notifications.repository';
import type { PageFilter } from '../src/db/pages.repository';
import { DATABASE } from '../src/db/schema';

/** The allowed filter combinations of notifications/get. */
export const COMBINATIONS: (keyof PageFilter)[][] = [
  ['documentId'],
  ['documentId', 'ids'],
  ['documentId', 'locationId'],
  ['documentId', 'locationId', 'ids'],
  ['userId'],
  ['userId', 'ids'],
  ['documentId', 'userId'],
  ['locationId', 'userId'],
  ['documentId', 'locationId', 'userId'],
];

interface ConnectedDatabase {
  url: string;
  dataSources: DataSource[];
  close(): Promise<void>;
}

/** A migrated database and `count` data sources, each like the data source of one writer process. */
export async function connectTestDatabase(count = 1): Promise<ConnectedDatabase> {
  const database = await createTestDatabase(DATABASE);
  const dataSources = await Promise.all(
    Array.from({ length: count }, () =>
      createDataSource({ name: 'test', url: database.url, ...DATABASE, poolSize: 5 }).initialize(),
    ),
  );
  return {
    url: database.url,
    dataSources,
    close: async () => {
      await Promise.all(dataSources.map((dataSource) => dataSource.destroy()));
      await database.drop();
    },
  };
}

/** The same for all tests of a file. */
export function testDatabase(count = 1): ConnectedDatabase {
  const database = {} as ConnectedDatabase;
  beforeAll(async () => void Object.assign(database, await connectTestDatabase(count)));
  afterAll(() => database.close?.());
  return database;
}

/** Gives each test of a file one connection to a migrated database, for tests of plans. */
export function connectForPlans(use: (runner: QueryRunner) => void): void {
  let close: (() => Promise<void>) | undefined;
  beforeEach(async () => {
    const database = await connectTestDatabase();
    const runner = database.dataSources[0].createQueryRunner();
    close = async () => {
      await runner.release();
      await database.close();
    };
    await prepareForPlans(runner);
    use(runner);
  });
  afterEach(() => close?.());
}

/** A notification with the given differences, and a fingerprint of all but its deadline and idempotency key. */
export function aNotification(differences: Partial<NewNotification> & { to?: string[] } = {}): NewNotification {
  const { to = ['reader'], ...rest } = differences;
  const notification = {
    apiKey: 'tenant',
    organizationId: 'org',
    id: 'n1',
    documentId: 'doc',
    notifyAll: false,
    content: {
      actionUser: { userId: 'actor' },
      displayHeadlineMessageTemplate: 'Hello',
      notifyUsers: to.map((userId) => ({ userId })),
    },
    ...rest,
  };
  const { deadline: _deadline, idempotency: _idempotency, ...identity } = notification as NewNotification;
  return { fingerprint: createHash('sha256').update(JSON.stringify(identity)).digest(), ...notification };
}
