import type { Pool } from 'pg';
import { decodePageToken, encodePageToken } from '@app/contracts/page-token';
import { eventually } from '@app/testing/eventually';
import type { Operation } from '@app/testing/system/system';
import { markOf, type TenantDoor } from './tenant-door';
import { TenantModel, type Filter } from './tenant-model';
import { ORGANIZATIONS, USERS, type Call, type DataOf, type Door, type Step } from './tenant-steps';
import { compareTables } from './tenant-tables';

/** Longer than events of the own memberships take, in milliseconds. */
const SETTLES_MS = 10_000;
/** Longer than the erasures of all tenants of a run, in milliseconds. */
const ERASED_MS = 60_000;

interface Row {
  id: string;
  timestamp: number;
  displayHeadlineMessageTemplate: string;
  actionUser: { userId: string; name: string };
  metadata: { apiKey: string; organizationId: string; documentId: string; locationId?: string };
  notifyUsers: Record<string, true>;
  read?: boolean;
}
type Page = { data: Row[]; pageToken?: string; unread?: unknown };

/** Shared by all tenants of a run: the prefix of every name, and page tokens used by the wrong tenant. */
export class SharedRun {
  readonly tokens: { owner: number; token: string }[] = [];
  /** One tenant has found something wrong: the others need not go on. */
  failed = false;

  constructor(private readonly prefix: string) {}

  named(name: string): string {
    return `${this.prefix} ${name}`;
  }
}

/** One tenant, which sends one request after the other, and compares each answer with its model. */
export class TenantCaller {
  private readonly model = new TenantModel();
  private erasures = 0;

  constructor(
    private readonly shared: SharedRun,
    private readonly door: TenantDoor,
    private readonly sql: Pool,
    private readonly count: (what: string) => void,
  ) {}

  /** @param waits false: an erasure changes nothing for this tenant, and the next call need not wait for its end */
  async follow(steps: readonly Step[], waits = true): Promise<void> {
    try {
      await this.followAll(steps, waits);
    } catch (error) {
      this.shared.failed = true;
      throw error;
    }
  }

  private async followAll(steps: readonly Step[], waits: boolean): Promise<void> {
    this.erasures = await this.endedErasures();
    const changes: Call[] = [];
    for (const next of steps) {
      const call = next.operation === 'repeat' ? changes.at(-1 - next.back) : next;
      if (this.shared.failed) return;
      if (!call) continue;
      if (['users/add', 'users/delete', 'notifications/add'].includes(call.operation)) changes.push(call);
      await this.call(this.mark({ ...call, door: next.door }), waits);
    }
    await this.untilErased();
    for (const organizationId of ORGANIZATIONS)
      for (const userId of USERS) await this.inbox('http', this.mark({ organizationId, userId }));
  }

  compareTables(): Promise<void> {
    return compareTables(this.sql, this.door.apiKey, this.shared.named(''), this.model);
  }

  /** With the prefix of the run in every identifier, and the mark of the tenant in every other text. */
  private mark<T>(data: T): T {
    const { index } = this.door;
    const text = JSON.stringify(data, (key, one: unknown) => {
      if (/^(\w+Id|id|idempotencyKey)$/.test(key) && typeof one === 'string') return this.shared.named(one);
      if (/Ids$/.test(key) && Array.isArray(one)) return one.map((id) => this.shared.named(String(id)));
      return key === 'name' || key === 'displayHeadlineMessageTemplate' ? `${markOf(index)} ${one as string}` : one;
    });
    return JSON.parse(text) as T;
  }

  private async call({ door, operation, data, idempotencyKey }: Call, waits: boolean): Promise<void> {
    if (operation === 'notifications/add') await this.addNotification(door, data, idempotencyKey);
    else if (operation === 'users/add')
      await this.expectOutcomes(door, operation, data, this.model.addUsers(data, idempotencyKey), idempotencyKey);
    else if (operation === 'users/delete')
      await this.expectOutcomes(door, operation, data, this.model.removeUsers(data, idempotencyKey), idempotencyKey);
    else if (operation === 'notifications/delete')
      await this.expectOutcomes(door, operation, data, { status: 'OK', answer: this.model.delete(data) });
    else if (operation === 'notifications/update')
      if ('notifications' in data)
        await this.expectOutcomes(door, operation, data, { status: 'OK', answer: this.model.mark(data) });
      else await this.markUpTo(door, data);
    else if (operation === 'notifications/get') await this.get(door, data);
    else if (operation === 'notifications/inbox') await this.inbox(door, data);
    else if (operation === 'users/get') await this.getUsers(door, data);
    else if (operation === 'documents/set') await this.setDocument(door, data);
    else await this.erase(door, data, waits);
  }

  private async expectOutcomes(
    through: Door,
    operation: Operation,
    data: object,
    expected: { status: string; answer?: unknown },
    idempotencyKey?: string,
  ): Promise<void> {
    const { status, body } = await this.door.ask(through, operation, data, idempotencyKey);
    const { status: wanted, answer } = expected;
    expect([operation, data, status, body.result?.data]).toEqual([operation, data, wanted, answer]);
    for (const { success } of Object.values((answer ?? {}) as Record<string, { success: boolean }>))
      this.count(`${operation} with success: ${success}`);
  }

  private async addNotification(through: Door, data: DataOf<'notifications/add'>, idempotencyKey?: string): Promise<void> {
    const expected = this.model.addNotification(data, idempotencyKey);
    const answer = await this.door.ask(through, 'notifications/add', data, idempotencyKey);
    expect([data, answer.status]).toEqual([data, expected.status]);
    if (answer.status !== 'OK') return;
    if (expected.id === undefined) this.model.store(data, answer.id ?? '', idempotencyKey);
    else expect(answer.id).toBe(expected.id);
  }

  private async setDocument(through: Door, data: DataOf<'documents/set'>): Promise<void> {
    const changed = this.model.setDocument(data);
    const { status, body } = await this.door.ask(through, 'documents/set', data);
    const stored = this.model.documents.get(`${data.organizationId}/${data.documentId}`)!;
    const version = body.result?.version as number;
    expect([data, status, body.result?.changed, version > stored.version]).toEqual([data, 'OK', changed, changed]);
    expect(version).toBeGreaterThanOrEqual(stored.version);
    const { access, folderId } = stored;
    expect(body.result?.data).toMatchObject({ success: true, access, version, ...(folderId !== undefined && { folderId }) });
    stored.version = version;
  }

  private async getUsers(through: Door, data: DataOf<'users/get'>): Promise<void> {
    const found: unknown[] = [];
    for (let pageToken: string | undefined; ;) {
      const { status, body } = await this.door.ask(through, 'users/get', { ...data, pageToken });
      expect(status).toBe('OK');
      found.push(...(body.result?.data as { userId: string; name: string }[]).map(({ userId, name }) => ({ userId, name })));
      pageToken = body.result?.pageToken;
      if (pageToken === undefined) break;
    }
    expect([data, found]).toEqual([data, this.model.users(data)]);
    if (found.length > 0) this.count('user');
  }

  private async markUpTo(
    through: Door,
    { organizationId, userId, upTo }: Extract<DataOf<'notifications/update'>, { upTo: unknown }>,
  ): Promise<void> {
    const documents = new Set(this.model.get({ organizationId }).map(({ documentId }) => documentId));
    const rows: Row[] = [];
    for (const documentId of documents) rows.push(...(await this.pages(through, { organizationId, documentId })));
    rows.sort((a, b) => b.timestamp - a.timestamp);
    const readUpTo = upTo === 'now' ? Number.MAX_SAFE_INTEGER : (rows.at(upTo)?.timestamp ?? 0);
    // Younger ones would be marked one by one, and only those that the user is shown.
    await this.untilSettled();
    const { status, body } = await this.door.ask(through, 'notifications/update', { organizationId, userId, readUpTo });
    const moment = body.result?.readUpTo as number;
    const newest = rows[0]?.timestamp ?? 0;
    expect([status, body.result?.data, upTo === 'now' ? moment >= newest : moment]).toEqual([
      'OK',
      {},
      upTo === 'now' ? true : readUpTo,
    ]);
    const covered = rows.filter(({ timestamp }) => timestamp <= moment).map(({ id }) => id);
    this.model.markUpTo(organizationId, userId, moment, covered);
  }

  private async erase(through: Door, data: DataOf<'users/data/delete'>, waits: boolean): Promise<void> {
    const { status, body } = await this.door.ask(through, 'users/data/delete', data);
    expect([status, body.result?.data]).toEqual(['OK', {}]);
    this.erasures++;
    this.model.erase(data);
    for (const organizationId of data.organizationIds ?? []) await this.getUsers(through, { organizationId });
    if (waits) await this.untilErased();
  }

  private async get(through: Door, { filter, order, pageSize, foreignToken }: DataOf<'notifications/get'>): Promise<void> {
    const request = { ...filter, ...(order && { order }), ...(pageSize && { pageSize }) };
    const expected = this.model.get(request).map(({ notificationId }) => notificationId);
    const rows = await this.settled(
      () => this.pages(through, request),
      (found) => idsOf(found).sort().join() === expected.toSorted().join(),
    );
    expect([request, idsOf(rows).sort()]).toEqual([request, expected.toSorted()]);
    const oldestFirst = order === 'asc' ? rows : rows.toReversed();
    this.expectInOrder(oldestFirst, filter.organizationId);
    // The tokens of pages that end at each of them.
    for (const { timestamp, id } of rows)
      this.shared.tokens.push({ owner: this.door.index, token: encodePageToken({ timestamp, notificationId: id }) });
    if (foreignToken) await this.presentForeignToken(through, request, rows);
  }

  private async inbox(through: Door, request: DataOf<'notifications/inbox'>): Promise<void> {
    const all = this.model.get(request).map((one) => ({ id: one.notificationId, read: this.model.isRead(one, request.userId) }));
    const unread = { count: all.filter(({ read }) => !read).length, more: false };
    const wanted = request.pageSize === 0 ? [] : all.filter(({ read }) => !request.unread || !read);
    const lines = (list: readonly { id: string; read?: boolean }[]) => list.map(({ id, read }) => `${id} ${read}`).sort();
    const counts: unknown[] = [];
    const rows = await this.settled(
      () => this.pages(through, request, 'notifications/inbox', counts),
      (found) =>
        lines(found).join() === lines(wanted).join() && counts.every((one) => JSON.stringify(one) === JSON.stringify(unread)),
    );
    expect([request, lines(rows), counts]).toEqual([request, lines(wanted), counts.map(() => unread)]);
    this.expectInOrder(rows.toReversed(), request.organizationId);
    for (const [state, number] of [
      ['unread', unread.count],
      ['read', all.length - unread.count],
    ])
      if (number) this.count(`inbox with ${state} ones`);
  }

  /** Own memberships may arrive later by event. Foreign notifications are wrong at any time. */
  private async settled(read: () => Promise<Row[]>, isRight: (rows: Row[]) => boolean): Promise<Row[]> {
    const found = async () => {
      const rows = await read();
      return isRight(rows) ? rows : undefined;
    };
    return (await eventually(found, SETTLES_MS).catch(() => undefined)) ?? read();
  }

  /** A page token is only a position: it gives no access. */
  private async presentForeignToken(through: Door, request: Filter & { order?: string }, rows: Row[]): Promise<void> {
    const foreign = this.shared.tokens.findLast(({ owner }) => owner !== this.door.index);
    const place = foreign && decodePageToken(foreign.token);
    if (!place) return;
    this.count('foreign page token');
    const after = rows.filter(({ timestamp, id }) => {
      const newer = timestamp - place.timestamp || (id < place.notificationId ? -1 : Number(id > place.notificationId));
      return request.order === 'asc' ? newer > 0 : newer < 0;
    });
    expect(await this.pages(through, { ...request, pageToken: foreign.token })).toEqual(after);
  }

  /** @param counts gets `unread` of each page */
  private async pages(
    through: Door,
    request: Filter & { pageToken?: string },
    operation: Operation = 'notifications/get',
    counts: unknown[] = [],
  ): Promise<Row[]> {
    const rows: Row[] = [];
    counts.length = 0;
    for (let { pageToken } = request; ;) {
      const { status, body } = await this.door.ask(through, operation, { ...request, pageToken });
      expect([operation, request, status]).toEqual([operation, request, 'OK']);
      const page = body.result as unknown as Page;
      for (const row of page.data) this.expectOwn(row, request.organizationId);
      rows.push(...page.data);
      if (page.unread !== undefined) counts.push(page.unread);
      ({ pageToken } = page);
      if (pageToken === undefined) return rows;
      expect(rows.length).toBeLessThan(10_000);
    }
  }

  private expectInOrder(oldestFirst: readonly Row[], organizationId: string): void {
    expect(oldestFirst).toEqual(oldestFirst.toSorted((a, b) => a.timestamp - b.timestamp || (a.id < b.id ? -1 : 1)));
    const stored = new Map(this.model.get({ organizationId }).map(({ notificationId }, place) => [notificationId, place]));
    oldestFirst.forEach(({ id, timestamp }, index) => {
      const before = oldestFirst[index - 1];
      if (before && before.timestamp !== timestamp) expect(stored.get(id)).toBeGreaterThan(stored.get(before.id) ?? -1);
    });
  }

  private expectOwn(row: Row, organizationId: string): void {
    this.count('row');
    const stored = this.model.find(organizationId, row.id);
    expect(row.metadata).toEqual({
      apiKey: this.door.apiKey,
      organizationId,
      documentId: stored?.documentId,
      ...(stored?.locationId !== undefined && { locationId: stored.locationId }),
    });
    const { userId, name } = row.actionUser;
    expect([row.displayHeadlineMessageTemplate, { userId, name }, Object.keys(row.notifyUsers).sort()]).toEqual([
      stored?.displayHeadlineMessageTemplate,
      stored?.actionUser,
      stored?.notifyUsers.toSorted(),
    ]);
  }

  /** Waits until everything of this tenant is old enough for a mark: no statement that began before it has still to commit. */
  private async untilSettled(): Promise<void> {
    const isSettled = async () => {
      const { rows } = await this.sql.query(
        `WITH settled AS MATERIALIZED (
           SELECT floor(extract(epoch FROM least(clock_timestamp(), min(xact_start))) * 1000) - 1 AS moment
           FROM pg_stat_activity WHERE datname = current_database()
         )
         SELECT FROM settled WHERE moment > (SELECT coalesce(max(n."timestamp"), 0) FROM notifications.notifications n
           JOIN notifications.organizations o ON o.id = n.organization WHERE o.api_key = $1)`,
        [this.door.apiKey],
      );
      return rows.length > 0;
    };
    await eventually(isSettled, SETTLES_MS);
  }

  private untilErased(): Promise<unknown> {
    return eventually(async () => (await this.endedErasures()) >= this.erasures, ERASED_MS);
  }

  private async endedErasures(): Promise<number> {
    const { rows } = await this.sql.query<{ ended: number }>(
      'SELECT count(*)::int AS ended FROM notifications.erasures WHERE api_key = $1 AND user_ids IS NULL',
      [this.door.apiKey],
    );
    return rows[0].ended;
  }
}

const idsOf = (rows: readonly Row[]) => rows.map(({ id }) => id);
