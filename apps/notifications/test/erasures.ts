import type { DataSource } from 'typeorm';
import type { OutboxEvent } from '@app/postgres/outbox/outbox-event';
import { NotificationsErasureSteps } from '../src/db/erasure-steps';
import { ErasuresRepository, type NewErasure } from '../src/db/erasures.repository';
import { InsertNotificationsRepository, type NewNotification } from '../src/db/insert-notifications.repository';
import { MembersRepository } from '../src/db/members.repository';
import { takeEvents } from '../src/db/outbox.repository';
import { aNotification, connectTestDatabase } from './notifications';

export const CANARY = 'canary "ada" \\ ü __proto__';
const ADA = { userId: CANARY, name: 'Canary Ada', email: 'canary@example.com' };
export const VERSION = 100;
export const DOCUMENT = { level: 'document', id: 'doc' } as const;

/** A notification that names the user in every field. */
export const naming = (differences: Partial<NewNotification> = {}): NewNotification =>
  aNotification({
    ...differences,
    content: {
      actionUser: ADA,
      displayHeadlineMessageTemplate: 'Hello',
      displayHeadlineMessageTemplateData: { actionUser: ADA, recipientUser: { userId: 'bob', name: 'Bob' }, place: 'here' },
      notificationSourceData: { n: 1.5, list: [null] },
      notifyUsers: [ADA, { userId: 'bob', name: 'Bob' }],
    },
  });

/** Erasures of one user, with a database and no broker. */
export class Erasures {
  readonly members: MembersRepository;
  /** Events of complete erasures. */
  published: OutboxEvent[] = [];

  private constructor(private readonly database: Awaited<ReturnType<typeof connectTestDatabase>>) {
    this.members = new MembersRepository(this.dataSource);
  }

  static async start(): Promise<Erasures> {
    return new Erasures(await connectTestDatabase(3));
  }

  get dataSource(): DataSource {
    return this.dataSources[0];
  }

  /** As of several processes. */
  get dataSources(): DataSource[] {
    return this.database.dataSources;
  }

  async empty(): Promise<void> {
    this.published = [];
    const tables = await this.dataSource.query<{ name: string }[]>(
      `SELECT relname AS name FROM pg_class WHERE relkind = 'r' AND relnamespace = 'notifications'::regnamespace AND relname <> 'migrations'`,
    );
    await this.dataSource.query(`TRUNCATE ${tables.map(({ name }) => name).join()} CASCADE`);
  }

  stop(): Promise<void> {
    return this.database.close();
  }

  store(...batch: NewNotification[]) {
    return new InsertNotificationsRepository(this.dataSource).insert(batch);
  }

  /** Everything that this service can have of a user in an organization. */
  async storeAll(apiKey: string, organizationId: string): Promise<void> {
    const { dataSource, members } = this;
    const ids = Array.from({ length: 5 }, (_, n) => `n${n}`);
    for (const id of ids) await this.store(naming({ apiKey, organizationId, id }));
    const users = [CANARY, 'bob'].map((userId) => ({ userId, version: 7 }));
    await members.add(apiKey, organizationId, DOCUMENT, users);
    await members.remove(apiKey, organizationId, { level: 'folder', id: 'f' }, users);
    await members.leave(apiKey, organizationId, [{ userId: CANARY, version: 5 }]);
    await members.complete(apiKey, organizationId, CANARY, { memberships: [{ ...DOCUMENT, version: 7 }], wrong: [] });
    await dataSource.query(
      `INSERT INTO readings SELECT n.organization, u, n."timestamp", n.id, true, -1
       FROM notifications n JOIN organizations o ON o.id = n.organization, unnest($3::text[]) u WHERE api_key = $1 AND organization_id = $2`,
      [apiKey, organizationId, [CANARY, 'bob']],
    );
    await dataSource.query(
      `INSERT INTO read_marks SELECT id, u, 1, 1 FROM organizations, unnest($3::text[]) u WHERE api_key = $1 AND organization_id = $2`,
      [apiKey, organizationId, [CANARY, 'bob']],
    );
  }

  /** Each organization with a row about the user, and the table. */
  async traces(text = 'canary'): Promise<string[]> {
    const found: string[] = [];
    for (const table of ['notifications', 'recipients', 'readings', 'read_marks', 'members', 'departures', 'complete_members']) {
      const rows = await this.dataSource.query<{ name: string }[]>(
        `SELECT DISTINCT api_key || '/' || organization_id || ' ${table}' AS name FROM ${table} t JOIN organizations o ON o.id = t.organization
         WHERE t::text ILIKE $1 ORDER BY 1`,
        [`%${text}%`],
      );
      found.push(...rows.map(({ name }) => name));
    }
    return found;
  }

  async order(differences: Partial<NewErasure> = {}): Promise<void> {
    const erasure = { id: 'event', apiKey: 'tenant', userIds: [CANARY], version: VERSION, upTo: Date.now(), ...differences };
    // The moment is over, as when the order has been on its way for a while.
    await new ErasuresRepository(this.dataSource).order({ ...erasure, upTo: erasure.upTo - 500 });
  }

  stepsOf(source = this.dataSource, settleMs = 0): NotificationsErasureSteps {
    return new NotificationsErasureSteps(source, (event) => this.published.push(event), settleMs);
  }

  /** Does all steps, and publishes what waits. */
  async erased(steps = this.stepsOf()): Promise<void> {
    for (let outcome; outcome !== 'idle';) {
      outcome = await steps.step();
      if (outcome === 'waiting') await this.publishAll();
    }
  }

  publishAll() {
    return this.dataSource.transaction((manager) =>
      takeEvents((manager.queryRunner as unknown as { databaseConnection: never }).databaseConnection, {
        events: 1000,
        bytes: 1e9,
        ageMs: -10_000,
      }),
    );
  }
}
