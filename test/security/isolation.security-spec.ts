import { randomUUID } from 'node:crypto';
import * as fc from 'fast-check';
import { FILTER_COMBINATIONS } from '@app/contracts/notifications.get';
import { decodePageToken, encodePageToken } from '@app/contracts/page-token';
import { eventually } from '@app/testing/eventually';
import { amountOf, report, SEED, Tally } from './campaign';
import { DirectPublisher } from './direct-publisher';
import { HttpClient } from './http-client';
import { OPERATIONS, patternOf, type Operation } from '@app/testing/system/system';
import { intrusionsOn, type Intrusion } from './intrusions';
import { TenantModel, isToAll, type AddNotificationData, type AddUsersData, type Filter } from './tenant-model';
import { WatchedSystem, type Tenant } from './watched-system';

const TENANTS = 4;
const RUNS = amountOf('SECURITY_ISOLATION_RUNS', 3);
/** Requests of one tenant in a run. All tenants run concurrently, so that a batch of the writer has rows of several. */
const STEPS = 60;
/** Enough that each operation comes through each door. */
const INTRUSIONS = 90;
const TIME_LIMIT_MS = 60_000 + RUNS * 10_000;

const ORGANIZATIONS = ['org a', 'org b'];
const DOCUMENTS = ['doc a', 'doc b'];
const LOCATIONS = ['location a', 'location b'];
const FOLDERS = ['folder a', 'folder b'];
const USERS = ['user a', 'user b', 'user c'];
const IDS = ['id a', 'id b', 'id c', 'id d'];
const KEYS = ['key a', 'key b', 'key c'];
const VARIANTS = ['1', '2'];

type Door = 'http' | 'queue';
type Added = Extract<Step, { kind: 'notifications/add' | 'users/add' }>;
type Step = { door: Door; idempotencyKey?: string } &
  // Repeats an earlier add: its index, counted back.
  (
    | { kind: 'repeat'; back: number }
    | { kind: 'notifications/add'; data: AddNotificationData }
    | { kind: 'users/add'; data: AddUsersData }
    | { kind: 'notifications/get'; filter: Filter; order?: 'asc' | 'desc'; pageSize?: number; foreignToken: boolean }
  );

interface Answer {
  status: string;
  id?: string;
  text: string;
  body: { result?: { data: unknown; pageToken?: string } };
}

interface Row {
  id: string;
  timestamp: number;
  displayHeadlineMessageTemplate: string;
  actionUser: { name: string };
  metadata: { apiKey: string; organizationId: string; documentId: string; locationId?: string };
  notifyUsers: Record<string, true>;
}

/** Absent once in this number of times. */
const optional = <T>(arbitrary: fc.Arbitrary<T>, freq = 2) => fc.option(arbitrary, { nil: undefined, freq });
const of = (list: readonly string[]) => fc.constantFrom(...list);
const users = (minLength: number) =>
  fc
    .tuple(fc.uniqueArray(of(USERS), { minLength, maxLength: 3 }), of(VARIANTS))
    .map(([ids, variant]) => ids.map((userId) => ({ userId, name: variant })));
const door = fc.constantFrom<Door>('http', 'queue');

const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({ kind: fc.constant('repeat' as const), door, back: fc.nat(3) }),
  fc.record({
    kind: fc.constant('notifications/add' as const),
    door,
    idempotencyKey: optional(of(KEYS)),
    data: fc.record({
      organizationId: of(ORGANIZATIONS),
      documentId: of(DOCUMENTS),
      locationId: optional(of(LOCATIONS)),
      notificationId: optional(of(IDS), 4),
      actionUser: of(USERS).map((userId) => ({ userId, name: '' })),
      displayHeadlineMessageTemplate: of(VARIANTS),
      notifyUsers: optional(users(0)),
      notifyAll: optional(fc.boolean()),
      createOrganization: optional(fc.boolean()),
      createDocument: optional(fc.boolean()),
    }),
  }),
  fc.record({
    kind: fc.constant('users/add' as const),
    door,
    idempotencyKey: optional(of(KEYS)),
    data: fc.record({
      organizationId: of(ORGANIZATIONS),
      documentId: optional(of(DOCUMENTS)),
      folderId: optional(of(FOLDERS)),
      users: users(1),
    }),
  }),
  fc.record({
    kind: fc.constant('notifications/get' as const),
    door,
    filter: fc
      .tuple(
        fc.record({ organizationId: of(ORGANIZATIONS), documentId: of(DOCUMENTS), locationId: of(LOCATIONS), userId: of(USERS) }),
        fc.uniqueArray(of(IDS), { maxLength: 4 }),
        fc.constantFrom(...FILTER_COMBINATIONS),
      )
      .map(([all, notificationIds, chosen]) => ({
        organizationId: all.organizationId,
        ...Object.fromEntries(
          Object.entries({ ...all, notificationIds }).filter(([name]) => (chosen as readonly string[]).includes(name)),
        ),
      })),
    order: optional(fc.constantFrom('asc' as const, 'desc' as const)),
    pageSize: optional(fc.integer({ min: 1, max: 3 })),
    foreignToken: fc.boolean(),
  }),
);

const intrusion = intrusionsOn({
  organizations: ORGANIZATIONS,
  documents: DOCUMENTS,
  locations: LOCATIONS,
  folders: FOLDERS,
  users: USERS,
  notifications: IDS,
});

describe('tenants', () => {
  let watched: WatchedSystem;
  let http: HttpClient;
  let publisher: DirectPublisher;
  const tally = new Tally();
  let run = 0;

  beforeAll(async () => {
    // One more, the intruder: it removes, marks and reads with the ids of the others.
    watched = await WatchedSystem.start(TENANTS + 1);
    http = new HttpClient(watched.system.services.gateway.url, TENANTS + 1);
    publisher = await DirectPublisher.connect(watched.system.amqpUrl);
  });
  afterAll(async () => {
    http?.close();
    await publisher?.close();
    await watched?.stop();
  });

  it('never see, change or learn of each other, even with shared ids and keys', async () => {
    const program = fc.tuple(...Array.from({ length: TENANTS }, () => fc.array(step, { maxLength: STEPS, size: 'max' })));
    const intrusions = fc.array(intrusion, { minLength: INTRUSIONS, maxLength: INTRUSIONS, size: 'max' });
    await fc.assert(
      fc.asyncProperty(program, intrusions, async (programs, intruding) => {
        const shared = new SharedRun(`run ${run++} ${watched.canary}`);
        const [intruder, ...tenants] = watched.tenants.map((tenant, index) => new Caller(shared, tenant, index)).reverse();
        await Promise.all([intruder.intrude(intruding), ...tenants.map((tenant, index) => tenant.follow(programs[index]))]);
        for (const tenant of tenants) await tenant.compareTables();
        await expectNoRowsOfOthers();
      }),
      // The seed does not determine how the tenants interleave: a replay may need several runs.
      {
        seed: SEED,
        path: process.env.SECURITY_PATH,
        numRuns: RUNS,
        unbiased: true,
        // Shrinking ends as well.
        interruptAfterTimeLimit: TIME_LIMIT_MS,
        markInterruptAsFailure: true,
      },
    );
  }, 600_000);

  it('used every operation, over HTTP and AMQP', () => {
    report({ tenants: TENANTS, runs: run, ...tally.toJSON() });
    for (const operation of OPERATIONS)
      for (const through of ['http', 'queue'])
        expect([operation, through, tally.of(`${operation} ${through} OK`)]).not.toContain(0);
    for (const refusal of ['NOT_FOUND', 'ALREADY_EXISTS', 'FAILED_PRECONDITION'])
      expect(tally.of(`notifications/add http ${refusal}`) + tally.of(`notifications/add queue ${refusal}`)).toBeGreaterThan(0);
    expect(tally.of('foreign page token')).toBeGreaterThan(0);
    expect(tally.of('row')).toBeGreaterThan(0);
  });

  it('leave every service running, and no token, password or body in its log', () => {
    watched.readLogs();
    expect(watched.verdict).toEqual({ lines: expect.any(Number), findings: [] });
    expect(watched.verdict.lines).toBeGreaterThan(100);
  });

  /** Shared by all tenants of a run: the prefix of every name, and page tokens used by the wrong tenant. */
  class SharedRun {
    readonly tokens: { owner: number; token: string }[] = [];

    constructor(private readonly prefix: string) {}

    named(name: string): string {
      return `${this.prefix} ${name}`;
    }

    /** Every value under these names is the same for all tenants. */
    rename<T>(value: T): T {
      const text = JSON.stringify(value, (key, one: unknown) => {
        if (/^(organizationId|documentId|locationId|folderId|userId|notificationId|id)$/.test(key) && typeof one === 'string')
          return this.named(one);
        return /Ids$/.test(key) && Array.isArray(one) ? one.map((id) => this.named(String(id))) : one;
      });
      return JSON.parse(text) as T;
    }
  }

  /** One tenant, which sends one request after the other. */
  class Caller {
    private readonly model = new TenantModel();

    constructor(
      private readonly shared: SharedRun,
      private readonly tenant: Tenant,
      private readonly index: number,
    ) {}

    async follow(steps: readonly Step[]): Promise<void> {
      const added: Added[] = [];
      for (const next of steps) {
        const one = next.kind === 'repeat' ? added.at(-1 - next.back) : next;
        if (!one) continue;
        if (one.kind === 'notifications/get') await this.get(one);
        else {
          added.push({ ...one, door: next.door });
          await this.add(next.door, one);
        }
      }
    }

    /** Calls without a model. Their answers have nothing of another tenant, and the models of the others stay right. */
    async intrude(calls: readonly Intrusion[]): Promise<void> {
      for (const { door: through, operation, data } of calls) {
        const { status } = await this.ask(through, operation, this.mark(data));
        expect(['OK', 'ALREADY_EXISTS']).toContain(status);
      }
    }

    private async add(through: Door, one: Added): Promise<void> {
      const idempotencyKey = one.idempotencyKey && this.shared.named(one.idempotencyKey);
      if (one.kind === 'notifications/add') await this.addNotification(through, this.mark(one.data), idempotencyKey);
      else await this.addUsers(through, this.mark(one.data), idempotencyKey);
    }

    /** With the mark of the tenant in every text that is not an identifier. */
    private mark<T>(data: T): T {
      const text = JSON.stringify(this.shared.rename(data), (key, value: unknown) =>
        key === 'name' || key === 'displayHeadlineMessageTemplate' ? `${markOf(this.index)} ${value as string}` : value,
      );
      return JSON.parse(text) as T;
    }

    private async addNotification(through: Door, data: AddNotificationData, idempotencyKey?: string): Promise<void> {
      const expected = this.model.addNotification(data, idempotencyKey);
      const answer = await this.ask(through, 'notifications/add', data, idempotencyKey);
      expect([data, answer.status]).toEqual([data, expected.status]);
      if (answer.status !== 'OK') return;
      if (expected.id === undefined) this.model.store(data, answer.id ?? '', idempotencyKey);
      else expect(answer.id).toBe(expected.id);
    }

    private async addUsers(through: Door, data: AddUsersData, idempotencyKey?: string): Promise<void> {
      const expected = this.model.addUsers(data, idempotencyKey);
      const answer = await this.ask(through, 'users/add', data, idempotencyKey);
      expect([data, answer.status]).toEqual([data, expected.status]);
      if (answer.status === 'OK') expect(answer.body.result?.data).toEqual(expected.answer);
    }

    private async get({
      door: through,
      filter,
      order,
      pageSize,
      foreignToken,
    }: Step & { kind: 'notifications/get' }): Promise<void> {
      const request = { ...this.shared.rename(filter), ...(order && { order }), ...(pageSize && { pageSize }) };
      const expected = this.model.get(request);
      const ids = (found: readonly { id: string }[]) =>
        found
          .map(({ id }) => id)
          .sort()
          .join();
      const wanted = ids(expected.map(({ notificationId: id }) => ({ id })));
      // Own memberships may arrive later by event. Foreign notifications are wrong at any time.
      const settled = async () => {
        const found = await this.pages(through, request);
        for (const row of found) this.expectOwn(row, request.organizationId);
        return ids(found) === wanted ? found : undefined;
      };
      const rows = (await eventually(settled, 10_000).catch(() => undefined)) ?? (await this.pages(through, request));
      expect(rows.map(({ id }) => id).sort()).toEqual(expected.map(({ notificationId }) => notificationId).sort());
      const stored = new Map(
        this.model.notifications.map((one, position) => [`${one.organizationId}/${one.notificationId}`, position]),
      );
      const positions = rows.map((row) => stored.get(`${request.organizationId}/${row.id}`) ?? -1);
      const oldestFirst = order === 'asc' ? rows : rows.toReversed();
      expect(oldestFirst).toEqual(oldestFirst.toSorted((a, b) => a.timestamp - b.timestamp || (a.id < b.id ? -1 : 1)));
      rows.forEach((row, index) => {
        const before = rows[index - 1];
        if (before && before.timestamp !== row.timestamp) expect(positions[index] > positions[index - 1]).toBe(order === 'asc');
        this.expectOwn(row, request.organizationId);
        // The token of a page that ends here.
        this.shared.tokens.push({
          owner: this.index,
          token: encodePageToken({ timestamp: row.timestamp, notificationId: row.id }),
        });
      });
      if (foreignToken) await this.presentForeignToken(through, request, rows);
    }

    /** A page token is only a position: it gives no access. */
    private async presentForeignToken(through: Door, request: Filter & { order?: string }, rows: Row[]): Promise<void> {
      const foreign = this.shared.tokens.findLast(({ owner }) => owner !== this.index);
      const place = foreign && decodePageToken(foreign.token);
      if (!place) return;
      tally.add('foreign page token');
      const after = rows.filter(({ timestamp, id }) => {
        const newer = timestamp - place.timestamp || (id < place.notificationId ? -1 : Number(id > place.notificationId));
        return request.order === 'asc' ? newer > 0 : newer < 0;
      });
      expect(await this.pages(through, { ...request, pageToken: foreign.token })).toEqual(after);
    }

    private async pages(through: Door, request: Filter & { pageToken?: string }): Promise<Row[]> {
      const rows: Row[] = [];
      for (let { pageToken } = request; ;) {
        const { status, body } = await this.ask(through, 'notifications/get', { ...request, pageToken });
        expect(status).toBe('OK');
        rows.push(...(body.result?.data as Row[]));
        pageToken = body.result?.pageToken;
        if (pageToken === undefined) return rows;
        expect(rows.length).toBeLessThan(10_000);
      }
    }

    private expectOwn(row: Row, organizationId: string): void {
      tally.add('row');
      const stored = this.model.find(organizationId, row.id);
      expect(row.metadata).toEqual({
        apiKey: this.tenant.apiKey,
        organizationId,
        documentId: stored?.documentId,
        ...(stored?.locationId !== undefined && { locationId: stored.locationId }),
      });
      expect([row.displayHeadlineMessageTemplate, row.actionUser.name]).toEqual([
        stored?.displayHeadlineMessageTemplate,
        stored?.actionUser.name,
      ]);
      expect(Object.keys(row.notifyUsers).sort()).toEqual((stored?.notifyUsers ?? []).map(({ userId }) => userId).sort());
    }

    private async ask(through: Door, operation: Operation, data: object, idempotencyKey?: string): Promise<Answer> {
      const answer = await (through === 'http'
        ? this.askOverHttp(operation, data, idempotencyKey)
        : this.askOverTheQueue(operation, data, idempotencyKey));
      tally.add(`${operation} ${through} ${answer.status}`);
      for (const [other, { apiKey }] of watched.tenants.entries()) {
        if (other === this.index) continue;
        expect(answer.text).not.toContain(markOf(other));
        expect(answer.text).not.toContain(apiKey);
      }
      return answer;
    }

    private async askOverHttp(operation: Operation, data: object, idempotencyKey?: string): Promise<Answer> {
      const { headers, text } = await http.send({
        method: 'POST',
        path: `/v1/${operation}`,
        headers: [
          ...['content-type', 'application/json'],
          ...Object.entries(this.tenant.headers).flat(),
          ...(idempotencyKey === undefined ? [] : ['idempotency-key', idempotencyKey]),
        ],
        body: Buffer.from(JSON.stringify({ data })),
        chunked: false,
      });
      const body = JSON.parse(text) as Answer['body'] & { error?: { status: string } };
      const id = headers['x-notification-id'] as string | undefined;
      return { status: body.error?.status ?? 'OK', text, body, ...(id !== undefined && { id: decodeURIComponent(id) }) };
    }

    private async askOverTheQueue(operation: Operation, data: object, idempotencyKey?: string): Promise<Answer> {
      const call = randomUUID();
      await publisher.ask(patternOf(operation), Buffer.from(JSON.stringify(data)), call, {
        messageId: call,
        userId: publisher.account,
        headers: {
          'x-api-key': this.tenant.apiKey,
          ...(idempotencyKey !== undefined && { 'x-idempotency-key': idempotencyKey }),
        },
      });
      const { status, headers, text } = await publisher.reply(call);
      const result = JSON.parse(text) as Answer['body']['result'];
      return { status: String(status), text, body: { result }, id: headers['x-notification-id'] as string | undefined };
    }

    /** Checks that the tables of both services have exactly the rows of the model for this tenant. */
    async compareTables(): Promise<void> {
      const { apiKey } = this.tenant;
      const prefix = `${this.shared.named('')}%`;
      const list = async (sql: string) =>
        (await watched.sql.query<{ row: string }>(sql, [apiKey, prefix])).rows.map(({ row }) => row).sort();
      const own = (table: string, schema = 'users') => `
        FROM ${schema}.${table} t JOIN ${schema}.organizations o ON o.id = t.organization
        WHERE o.api_key = $1 AND o.organization_id LIKE $2`;
      const { notifications, rows, names } = this.model;
      const unique = (values: string[]) => [...new Set(values)].sort();

      const stored = notifications.map(
        (one) => `${one.organizationId}/${one.notificationId}/${one.displayHeadlineMessageTemplate}`,
      );
      expect(
        await list(
          `SELECT o.organization_id || '/' || t.id || '/' || (t.content ->> 'displayHeadlineMessageTemplate') AS row ${own('notifications', 'notifications')}`,
        ),
      ).toEqual(stored.sort());
      expect(await list(`SELECT o.organization_id || '/' || t.document_id AS row ${own('documents', 'notifications')}`)).toEqual(
        unique(notifications.map(({ organizationId, documentId }) => `${organizationId}/${documentId}`)),
      );
      expect(
        await list(
          `SELECT o.organization_id || '/' || t.notification_id || '/' || t.user_id AS row ${own('recipients', 'notifications')}`,
        ),
      ).toEqual(
        notifications
          .flatMap(({ organizationId, notificationId, notifyUsers = [] }) =>
            notifyUsers.map(({ userId }) => `${organizationId}/${notificationId}/${userId}`),
          )
          .sort(),
      );
      const toAll = await list(`SELECT t.id || t.notify_all AS row ${own('notifications', 'notifications')}`);
      expect(toAll).toEqual(notifications.map((one) => `${one.notificationId}${isToAll(one)}`).sort());

      expect(await list(`SELECT o.organization_id || '/' || t.user_id || '/' || t.name AS row ${own('users')}`)).toEqual(
        [...names].map(([user, name]) => `${user}/${name}`).sort(),
      );
      const found = await Promise.all([
        list(
          `SELECT 'organization/' || o.organization_id AS row FROM users.organizations o WHERE o.api_key = $1 AND o.organization_id LIKE $2`,
        ),
        list(`SELECT 'document/' || o.organization_id || '/' || t.document_id AS row ${own('documents')}`),
        list(`SELECT 'folder/' || o.organization_id || '/' || t.folder_id AS row ${own('folders')}`),
        list(`SELECT 'member of organization/' || o.organization_id || '/' || t.user_id AS row ${own('organization_members')}`),
        list(
          `SELECT 'member of document/' || o.organization_id || '/' || t.document_id || '/' || t.user_id AS row ${own('document_members')}`,
        ),
        list(
          `SELECT 'member of folder/' || o.organization_id || '/' || t.folder_id || '/' || t.user_id AS row ${own('folder_members')}`,
        ),
      ]);
      expect(found.flat().sort()).toEqual([...rows].sort());
    }
  }

  /** A check without a model: no row with the mark of a tenant belongs to another key. */
  async function expectNoRowsOfOthers(): Promise<void> {
    const marks = watched.tenants.map((_, index) => markOf(index));
    const keys = watched.tenants.map(({ apiKey }) => apiKey);
    const { rows } = await watched.sql.query(
      `WITH tenants AS (SELECT * FROM unnest($1::text[], $2::text[]) AS t(api_key, mark)), marked AS (
         SELECT o.api_key, n.content::text AS text
         FROM notifications.notifications n JOIN notifications.organizations o ON o.id = n.organization
         UNION ALL
         SELECT o.api_key, u.name FROM users.users u JOIN users.organizations o ON o.id = u.organization
       )
       SELECT m.* FROM marked m JOIN tenants t ON position(t.mark IN m.text) > 0 AND t.api_key <> m.api_key
       UNION ALL
       SELECT k.api_key, 'an Idempotency-Key of a notification that is not there: ' || k.key
       FROM notifications.idempotency_keys k WHERE NOT EXISTS (
         SELECT FROM notifications.notifications n JOIN notifications.organizations o ON o.id = n.organization
         WHERE n.id = k.notification_id AND o.api_key = k.api_key)
       UNION ALL
       SELECT t.api_key, 'a recipient without its notification: ' || r.notification_id
       FROM notifications.recipients r JOIN notifications.organizations t ON t.id = r.organization WHERE NOT EXISTS (
         SELECT FROM notifications.notifications n
         WHERE n.organization = r.organization AND n.id = r.notification_id AND n."timestamp" = r."timestamp"
           AND n.document_id = r.document_id AND n.location_id IS NOT DISTINCT FROM r.location_id)`,
      [keys, marks],
    );
    expect(rows).toEqual([]);
  }
});

const markOf = (tenant: number) => `mark-of-tenant-${tenant}`;
