import { createHash } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import type { DataOf } from './tenant-steps';

type AddNotificationData = DataOf<'notifications/add'>;
type SetDocumentData = DataOf<'documents/set'>;
type UpdateData = Extract<DataOf<'notifications/update'>, { notifications: unknown }>;
export type Filter = DataOf<'notifications/get'>['filter'];

/** A notification as it is shown: the content loses users who are erased. */
export interface ModelNotification extends Omit<AddNotificationData, 'notifyUsers' | 'actionUser'> {
  notificationId: string;
  toAll: boolean;
  actionUser: { userId: string; name: string };
  notifyUsers: string[];
}

type Expected = 'OK' | 'NOT_FOUND' | 'ALREADY_EXISTS' | 'FAILED_PRECONDITION';
type Outcomes = Record<string, { success: boolean; message: string }>;

/** Model of the guarantees for one tenant, as if there were no other. */
export class TenantModel {
  /** In order of storing. */
  notifications: ModelNotification[] = [];
  /** All that was added, also when it is deleted: an id stays taken. By `<organization>/<notificationId>`. */
  readonly taken = new Map<string, AddNotificationData>();
  /** Organizations, folders, documents and live memberships, each as `<table>/<organization>/…`. */
  readonly rows = new Set<string>();
  /** Names of users by `<organization>/<userId>`. */
  readonly names = new Map<string, string>();
  readonly documents = new Map<string, { access: string; folderId?: string; version: number }>();
  /** Single marks by `<organization>/<userId>`, then by notification. */
  readonly readings = new Map<string, Map<string, boolean>>();
  /** Moments up to which all is read, by `<organization>/<userId>`. */
  readonly marks = new Map<string, { asked: number; read: Set<string>; isKept: boolean }>();
  private readonly answers = new Map<string, { request: object; answer: unknown }>();

  /** @returns the status; with OK the expected id, absent when the service creates it */
  addNotification(data: AddNotificationData, idempotencyKey?: string): { status: Expected; id?: string } {
    const kept = this.kept<string>('notifications/add', data, idempotencyKey);
    if (kept) return kept.status === 'OK' ? { status: 'OK', id: kept.answer } : { status: kept.status };
    const { organizationId, documentId, notificationId } = data;
    const isThere = (row: string, document?: string) => this.rows.has(row) || this.hasNotifications(organizationId, document);
    if (data.createOrganization === false && !isThere(`organization/${organizationId}`)) return { status: 'NOT_FOUND' };
    if (data.createDocument === false && !isThere(`document/${organizationId}/${documentId}`, documentId))
      return { status: 'NOT_FOUND' };
    if (notificationId === undefined) return { status: 'OK' };
    const stored = this.taken.get(`${organizationId}/${notificationId}`);
    if (stored && !isDeepStrictEqual(contentOf(stored), contentOf(data))) return { status: 'ALREADY_EXISTS' };
    this.store(data, notificationId, idempotencyKey);
    return { status: 'OK', id: notificationId };
  }

  /** Records an answer OK. */
  store(data: AddNotificationData, notificationId: string, idempotencyKey?: string): void {
    this.keep('notifications/add', data, idempotencyKey, notificationId);
    const id = `${data.organizationId}/${notificationId}`;
    if (this.taken.has(id)) return;
    this.taken.set(id, data);
    const users = data.notifyUsers ?? [];
    const toAll = data.notifyAll ?? users.length === 0;
    this.notifications.push({ ...data, notificationId, toAll, notifyUsers: users.map(({ userId }) => userId) });
  }

  /** @returns the status; with OK the answer by userId */
  addUsers(data: DataOf<'users/add'>, idempotencyKey?: string): { status: Expected; answer?: unknown } {
    const kept = this.kept('users/add', data, idempotencyKey);
    if (kept) return kept;
    const { organizationId } = data;
    const level = levelOf(data);
    this.rows.add(`organization/${organizationId}`);
    this.rows.add(level);
    const answer = Object.fromEntries(
      data.users.map(({ userId, name }) => {
        const message = this.rows.has(`member of ${level}/${userId}`) ? 'User updated.' : 'User added.';
        this.rows.add(`member of ${level}/${userId}`);
        this.names.set(`${organizationId}/${userId}`, name);
        return [userId, { success: true, id: createHash('md5').update(userId).digest('hex'), message }];
      }),
    );
    this.keep('users/add', data, idempotencyKey, answer);
    return { status: 'OK', answer };
  }

  /** @returns the status; with OK the answer by userId */
  removeUsers(data: DataOf<'users/delete'>, idempotencyKey?: string): { status: Expected; answer?: unknown } {
    const kept = this.kept('users/delete', data, idempotencyKey);
    if (kept) return kept;
    const ofOrganization = data.documentId === undefined && data.folderId === undefined;
    const answer: Outcomes = {};
    for (const userId of data.userIds) {
      const ended = ofOrganization ? this.memberships(data.organizationId, userId) : [`member of ${levelOf(data)}/${userId}`];
      // Not some(): each of them ends.
      const success = ended.filter((row) => this.rows.delete(row)).length > 0;
      answer[userId] = { success, message: success ? 'User removed.' : 'User does not exist.' };
    }
    this.keep('users/delete', data, idempotencyKey, answer);
    return { status: 'OK', answer };
  }

  /** The users who were added at a level, in order, with their names. */
  users(data: DataOf<'users/get'>): { userId: string; name: string | undefined }[] {
    const prefix = `member of ${levelOf(data)}/`;
    const members = [...this.rows].filter((row) => row.startsWith(prefix)).map((row) => row.slice(prefix.length));
    const chosen = members.filter((userId) => data.userIds?.includes(userId) ?? true);
    return chosen.sort().map((userId) => ({ userId, name: this.names.get(`${data.organizationId}/${userId}`) }));
  }

  /** @returns whether this changes the document */
  setDocument({ organizationId, documentId, folderId, access = 'organizationPrivate' }: SetDocumentData): boolean {
    const before = this.documents.get(`${organizationId}/${documentId}`);
    if (before?.access === access && before.folderId === folderId) return false;
    this.rows.add(`organization/${organizationId}`).add(`document/${organizationId}/${documentId}`);
    if (folderId !== undefined) this.rows.add(`folder/${organizationId}/${folderId}`);
    this.documents.set(`${organizationId}/${documentId}`, { access, folderId, version: before?.version ?? 0 });
    return true;
  }

  /** In order of storing. */
  get({ organizationId, documentId, locationId, userId, notificationIds }: Filter): ModelNotification[] {
    return this.notifications.filter(
      (one) =>
        one.organizationId === organizationId &&
        (documentId === undefined || one.documentId === documentId) &&
        (locationId === undefined || one.locationId === locationId) &&
        (notificationIds === undefined || notificationIds.includes(one.notificationId)) &&
        (userId === undefined || this.isReached(one, userId) || one.notifyUsers.includes(userId)),
    );
  }

  find(organizationId: string, notificationId: string): ModelNotification | undefined {
    return this.notifications.find((one) => one.organizationId === organizationId && one.notificationId === notificationId);
  }

  /** @returns the answer by id */
  delete(filter: DataOf<'notifications/delete'>): Outcomes {
    const { organizationId, notificationIds } = filter;
    const deleted = this.get(filter);
    this.notifications = this.notifications.filter((one) => !deleted.includes(one));
    for (const { notificationId } of deleted)
      for (const [user, each] of this.readings) if (user.startsWith(`${organizationId}/`)) each.delete(notificationId);
    const ids = notificationIds ?? deleted.map(({ notificationId }) => notificationId);
    const isGone = (id: string) => this.taken.has(`${organizationId}/${id}`) && !this.find(organizationId, id);
    return outcomes(ids, isGone, 'Notification deleted.', 'Failed to delete notification.');
  }

  /** @returns the answer by id */
  mark({ notifications, ...filter }: UpdateData): Outcomes {
    const ids = notifications.map(({ id }) => id);
    const found = new Set(this.get({ ...filter, notificationIds: ids }).map(({ notificationId }) => notificationId));
    for (const { id, readByUserIds = [], unreadByUserIds = [] } of notifications.filter((one) => found.has(one.id)))
      for (const userId of [...readByUserIds, ...unreadByUserIds])
        this.readingsOf(filter.organizationId, userId).set(id, readByUserIds.includes(userId));
    return outcomes(ids, (id) => found.has(id), 'Notification updated.', 'Failed to update notification.');
  }

  /** @param covered the notifications that are as old as the moment, or older */
  markUpTo(organizationId: string, userId: string, moment: number, covered: readonly string[]): void {
    const user = `${organizationId}/${userId}`;
    const before = this.marks.get(user);
    if (before && before.asked >= moment) return;
    // An organization without notifications may be unknown to their service yet, which then keeps no mark. It would have no effect.
    const isKept = this.hasNotifications(organizationId);
    this.marks.set(user, { asked: moment, read: new Set([...(before?.read ?? []), ...covered]), isKept });
    for (const id of covered) this.readingsOf(organizationId, userId).delete(id);
  }

  isRead({ organizationId, notificationId }: ModelNotification, userId: string): boolean {
    const user = `${organizationId}/${userId}`;
    return this.readings.get(user)?.get(notificationId) ?? this.marks.get(user)?.read.has(notificationId) ?? false;
  }

  /** Memberships and details, which are gone at once, then what names the users. */
  erase({ userIds, organizationIds }: DataOf<'users/data/delete'>): void {
    const isMeant = (organizationId: string) => organizationIds?.includes(organizationId) ?? true;
    const organizations = [...this.rows].flatMap((row) => /^organization\/(.*)$/.exec(row)?.[1] ?? []);
    for (const organizationId of new Set([...organizations, ...this.notifications.map((one) => one.organizationId)]))
      for (const userId of isMeant(organizationId) ? userIds : []) {
        for (const row of this.memberships(organizationId, userId)) this.rows.delete(row);
        for (const kept of [this.names, this.readings, this.marks]) kept.delete(`${organizationId}/${userId}`);
      }
    for (const one of this.notifications.filter(({ organizationId }) => isMeant(organizationId))) {
      one.notifyUsers = one.notifyUsers.filter((userId) => !userIds.includes(userId));
      if (userIds.includes(one.actionUser.userId)) one.actionUser = { userId: 'erased', name: '' };
    }
  }

  private memberships = (organizationId: string, userId: string): string[] =>
    [...this.rows].filter(
      (row) => row.startsWith('member of ') && row.split('/')[1] === organizationId && row.endsWith(`/${userId}`),
    );

  private readingsOf(organizationId: string, userId: string): Map<string, boolean> {
    const user = `${organizationId}/${userId}`;
    const known = this.readings.get(user) ?? new Map<string, boolean>();
    this.readings.set(user, known);
    return known;
  }

  /** Through notifyAll. */
  private isReached({ organizationId, documentId, toAll }: ModelNotification, userId: string): boolean {
    const { access, folderId } = this.documents.get(`${organizationId}/${documentId}`) ?? {};
    const isMember = (level: string) => this.rows.has(`member of ${level}/${userId}`);
    return (
      toAll &&
      (isMember(`document/${organizationId}/${documentId}`) ||
        (folderId !== undefined && isMember(`folder/${organizationId}/${folderId}`)) ||
        access === 'public' ||
        (access !== 'restricted' && isMember(`organization/${organizationId}`)))
    );
  }

  private hasNotifications(organizationId: string, documentId?: string): boolean {
    return [...this.taken.values()].some(
      (one) => one.organizationId === organizationId && one.documentId === (documentId ?? one.documentId),
    );
  }

  private kept<Answer>(
    operation: string,
    data: object,
    key?: string,
  ): { status: 'OK'; answer: Answer } | { status: 'FAILED_PRECONDITION' } | undefined {
    const kept = key === undefined ? undefined : this.answers.get(`${operation}/${key}`);
    if (!kept) return undefined;
    return isDeepStrictEqual(kept.request, data)
      ? { status: 'OK', answer: kept.answer as Answer }
      : { status: 'FAILED_PRECONDITION' };
  }

  private keep(operation: string, request: object, key: string | undefined, answer: unknown): void {
    if (key !== undefined && !this.answers.has(`${operation}/${key}`))
      this.answers.set(`${operation}/${key}`, { request, answer });
  }
}

function levelOf({ organizationId, documentId, folderId }: { organizationId: string; documentId?: string; folderId?: string }) {
  if (documentId !== undefined) return `document/${organizationId}/${documentId}`;
  return folderId !== undefined ? `folder/${organizationId}/${folderId}` : `organization/${organizationId}`;
}

const outcomes = (ids: readonly string[], isDone: (id: string) => boolean, done: string, failed: string): Outcomes =>
  Object.fromEntries(ids.map((id) => [id, { success: isDone(id), message: isDone(id) ? done : failed }]));

function contentOf({
  notificationId: _id,
  createOrganization: _organization,
  createDocument: _document,
  ...content
}: AddNotificationData) {
  return content;
}
