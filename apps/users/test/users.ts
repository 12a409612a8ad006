import { randomUUID } from 'node:crypto';
import { Client } from 'pg';
import type { DataSource } from 'typeorm';
import type { CheckAccessRequest, CheckAccessResult } from '@app/contracts/access.check';
import type { ListContactsRequest, ListContactsResult } from '@app/contracts/contacts.list';
import type { SetDocumentRequest, SetDocumentResult } from '@app/contracts/documents.set';
import type { ListMembershipsResult, Membership } from '@app/contracts/memberships.list';
import type { AddUsersRequest, AddUsersResult } from '@app/contracts/users.add';
import type { GetUsersRequest, GetUsersResult } from '@app/contracts/users.get';
import type { DeleteUsersRequest, DeleteUsersResult } from '@app/contracts/users.delete';
import type { EraseUsersRequest, EraseUsersResult } from '@app/contracts/users.erase';
import { createDataSource } from '@app/postgres/connections/data-source';
import { openPool } from '@app/postgres/connections/open-pool';
import type { ErasureLoop } from '@app/postgres/retention/erasure-loop';
import { OutboxRelay } from '@app/postgres/outbox/outbox';
import type { OutboxEvent } from '@app/postgres/outbox/outbox-event';
import { DeliveryContext } from '@app/rabbitmq/delivery/delivery-context';
import { createTestDatabase } from '@app/testing/database/database';
import { AddUsersHandler } from '../src/commands/add-users/add-users.handler';
import { MembersWriter } from '../src/commands/add-users/members-writer';
import { DeleteUsersHandler } from '../src/commands/delete-users.handler';
import { EraseUsersHandler } from '../src/commands/erase-users.handler';
import { SetDocumentHandler } from '../src/commands/set-document.handler';
import { AccessRepository } from '../src/db/access.repository';
import { DocumentsRepository } from '../src/db/documents.repository';
import { UsersErasureSteps } from '../src/db/erasure-steps';
import { ErasuresRepository } from '../src/db/erasures.repository';
import { CheckAccessHandler } from '../src/queries/check-access.handler';
import { GetUsersHandler } from '../src/queries/get-users.handler';
import { ListContactsHandler } from '../src/queries/list-contacts.handler';
import { ListMembershipsHandler } from '../src/queries/list-memberships.handler';
import { IdempotencyKeysRepository } from '../src/db/idempotency-keys.repository';
import { MembersRepository } from '../src/db/members.repository';
import { takeEvents } from '../src/db/outbox.repository';
import { DATABASE } from '../src/db/schema';
import { Rival } from './rival';

/** Options of a users/add call in addition to its body. */
export interface Call {
  apiKey?: string;
  deadline?: number;
  idempotencyKey?: string;
  messageId?: string;
  /** Whether it is a call to another process. */
  elsewhere?: boolean;
}

const contextOf = (pattern: string, apiKey: string, call: Call = {}) =>
  new DeliveryContext({ requestId: 'r', awaited: true, redelivered: false, attempt: 1, pattern, apiKey, ...call });

/** A migrated database, and a data source like the one of a users process. */
export async function connectTestDatabase(
  poolSize = 2,
): Promise<{ url: string; dataSource: DataSource; close(): Promise<void> }> {
  const { url, drop } = await createTestDatabase(DATABASE);
  const dataSource = await createDataSource({ name: 'users test', url, ...DATABASE, poolSize }).initialize();
  const close = async () => {
    await dataSource.destroy();
    await drop();
  };
  return { url, dataSource, close };
}

/** The handlers of users for the tests of a file, on a database of their own, with the API keys `one` and `two`. Each test begins with no other row. */
export function usersOnDatabase(): UsersOnDatabase {
  const on = new UsersOnDatabase();
  beforeAll(() => on.start());
  beforeEach(() => on.clear());
  afterAll(() => on.stop());
  return on;
}

/** See {@link usersOnDatabase}. */
class UsersOnDatabase {
  /** Events in the order of publishing. */
  readonly events: OutboxEvent[] = [];
  dataSource: DataSource;
  members: MembersRepository;
  /** Of the handlers, also of a test that makes its own. {@link published} replaces it. */
  outbox: OutboxRelay;
  private database?: Awaited<ReturnType<typeof connectTestDatabase>>;
  private writer: MembersWriter;

  async start(): Promise<void> {
    this.database = await connectTestDatabase(20);
    const { dataSource } = this.database;
    // Opening a connection takes a statement, which would count for the call that needs it.
    await openPool(dataSource, [], new AbortController().signal);
    await dataSource.query(`INSERT INTO api_keys (key, name) VALUES ('one', ''), ('two', '')`);
    this.dataSource = dataSource;
    this.members = new MembersRepository(dataSource);
    this.writer = new MembersWriter(this.members);
    this.outbox = this.relay();
  }

  private relay(): OutboxRelay {
    const publish = async (batch: readonly OutboxEvent[]) => void this.events.push(...batch);
    return new OutboxRelay(this.dataSource, { take: takeEvents, publish });
  }

  async stop(): Promise<void> {
    await this.outbox?.stop();
    await this.database?.close();
  }

  /** Publishes the waiting events, at most 200, and stops. An empty outbox is not a sufficient sign, because a relay checks once more. */
  async published(): Promise<void> {
    await this.outbox.stop();
    this.outbox = this.relay();
  }

  /** Deletes all rows except the API keys. */
  async clear(): Promise<void> {
    await this.dataSource.query('TRUNCATE organizations, idempotency_keys, outbox, erasures, version_times CASCADE');
    this.events.length = 0;
  }

  add(request: AddUsersRequest, { apiKey = 'one', elsewhere, ...call }: Call = {}): Promise<AddUsersResult> {
    const writer = elsewhere ? new MembersWriter(this.members) : this.writer;
    const handler = new AddUsersHandler(writer, new IdempotencyKeysRepository(this.dataSource), this.outbox);
    return handler.addUsers(request, contextOf('users.add.v1', apiKey, call));
  }

  delete(request: DeleteUsersRequest, { apiKey = 'one', ...call }: Call = {}): Promise<DeleteUsersResult> {
    const handler = new DeleteUsersHandler(this.members, new IdempotencyKeysRepository(this.dataSource), this.outbox);
    return handler.deleteUsers(request, contextOf('users.delete.v1', apiKey, { messageId: randomUUID(), ...call }));
  }

  /** Begins an erasure; {@link erased} goes on with it. */
  erase(request: EraseUsersRequest, { apiKey = 'one', ...call }: Call = {}): Promise<EraseUsersResult> {
    const erasures = new ErasuresRepository(this.dataSource);
    const notStarted = { wake: () => undefined } as unknown as ErasureLoop;
    const handler = new EraseUsersHandler(erasures, new IdempotencyKeysRepository(this.dataSource), this.outbox, notStarted);
    return handler.eraseUsers(request, contextOf('users.erase.v1', apiKey, { messageId: randomUUID(), ...call }));
  }

  /** Does the steps of erasures, and publishes events, until none is left. */
  async erased(): Promise<void> {
    const steps = new UsersErasureSteps(this.dataSource, () => this.outbox.wake());
    for (let outcome; outcome !== 'idle';) {
      outcome = await steps.step();
      if (outcome === 'waiting') await this.published();
    }
    await this.published();
  }

  getUsers(request: GetUsersRequest, apiKey = 'one'): Promise<GetUsersResult> {
    const handler = new GetUsersHandler(new AccessRepository(this.dataSource));
    return handler.getUsers(request, contextOf('users.get.v1', apiKey));
  }

  listMemberships(
    userId: string,
    organizationId = 'org',
    { after, deadline }: { after?: Membership; deadline?: number } = {},
  ): Promise<ListMembershipsResult> {
    const handler = new ListMembershipsHandler(new AccessRepository(this.dataSource));
    const request = { organizationId, userId, ...(after && { afterLevel: after.level, afterId: after.id }) };
    return handler.listMemberships(request, contextOf('memberships.list.v1', 'one', { deadline }));
  }

  setDocument(request: SetDocumentRequest, { apiKey = 'one', ...call }: Call = {}): Promise<SetDocumentResult> {
    const handler = new SetDocumentHandler(new DocumentsRepository(this.dataSource), this.outbox);
    return handler.setDocument(request, contextOf('documents.set.v1', apiKey, call));
  }

  checkAccess(request: CheckAccessRequest, apiKey = 'one'): Promise<CheckAccessResult> {
    const handler = new CheckAccessHandler(new AccessRepository(this.dataSource));
    return handler.checkAccess(request, contextOf('access.check.v1', apiKey));
  }

  listContacts(request: ListContactsRequest, apiKey = 'one'): Promise<ListContactsResult> {
    const handler = new ListContactsHandler(new AccessRepository(this.dataSource));
    return handler.listContacts(request, contextOf('contacts.list.v1', apiKey));
  }

  /** The values of a query of one text column, sorted. */
  async values(sql: string): Promise<string[]> {
    const found = await this.dataSource.query<Record<string, string>[]>(sql);
    return found.flatMap((row) => Object.values(row)).sort();
  }

  organizationMembers(): Promise<string[]> {
    return this.values(`SELECT api_key || '/' || organization_id || '/' || user_id
                        FROM organization_members JOIN organizations ON id = organization`);
  }

  folderMembers(): Promise<string[]> {
    return this.values(`SELECT folder_id || '/' || user_id FROM folder_members`);
  }

  documentMembers(): Promise<string[]> {
    return this.values(`SELECT document_id || '/' || user_id FROM document_members`);
  }

  async user(userId: string): Promise<unknown> {
    const [user] = await this.dataSource.query<unknown[]>('SELECT name, email, initial FROM users WHERE user_id = $1', [userId]);
    return user;
  }

  /**
   * Runs `work` while another transaction has done `sql`; it is rolled back at the end unless `work` has committed it.
   *
   * @param account that of the database; default: the same as that of the service
   */
  async holding(sql: string, work: (rival: Rival) => Promise<void>, account?: string): Promise<void> {
    const url = new URL(this.database!.url);
    url.username = account ?? url.username;
    const client = new Client({ connectionString: url.href, options: `-c search_path=${DATABASE.schema}` });
    await client.connect();
    try {
      await client.query(`BEGIN; ${sql}`);
      await work(new Rival(client));
    } finally {
      await client.end();
    }
  }
}

/** User objects with only these ids. */
export const users = (...userIds: string[]) => userIds.map((userId) => ({ userId }));

/** `count` users with a name. */
export const numbered = (count: number) =>
  Array.from({ length: count }, (_, index) => ({ userId: `u${index}`, name: `User ${index}` }));

/** The message of each entry, by userId. */
export const messages = ({ data }: AddUsersResult) =>
  Object.fromEntries(Object.entries(data).map(([userId, { message }]) => [userId, message]));

/** The error of a call; undefined when it succeeds. */
export async function refusal(call: Promise<unknown>): Promise<unknown> {
  const [outcome] = await Promise.allSettled([call]);
  return outcome.status === 'rejected' ? outcome.reason : undefined;
}

/** Number of queries sent to PostgreSQL while `work` runs, without the queries that publish events. */
export async function statementsOf(work: () => Promise<unknown>): Promise<number> {
  const query = jest.spyOn(Client.prototype, 'query');
  await work();
  const sent = query.mock.calls.map(([asked]) => asked as unknown as string | { name?: string });
  const ofTheRelay = /^(BEGIN|COMMIT|ROLLBACK)/;
  const statements = sent.filter((one) => (typeof one === 'string' ? !ofTheRelay.test(one) : one.name !== 'take-events')).length;
  query.mockRestore();
  return statements;
}
