import { createHash } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';

export interface AddNotificationData {
  organizationId: string;
  documentId: string;
  locationId?: string;
  notificationId?: string;
  actionUser: { userId: string; name: string };
  displayHeadlineMessageTemplate: string;
  notifyUsers?: { userId: string; name: string }[];
  notifyAll?: boolean;
  createOrganization?: boolean;
  createDocument?: boolean;
}

export interface AddUsersData {
  organizationId: string;
  documentId?: string;
  folderId?: string;
  users: { userId: string; name: string }[];
}

export interface Filter {
  organizationId: string;
  documentId?: string;
  locationId?: string;
  userId?: string;
  notificationIds?: string[];
}

/** Notifications that a tenant has stored, in order. */
export interface ModelNotification extends AddNotificationData {
  notificationId: string;
}

type Expected = 'OK' | 'NOT_FOUND' | 'ALREADY_EXISTS' | 'FAILED_PRECONDITION';

/** Model of the guarantees for one tenant, as if there were no other. */
export class TenantModel {
  readonly notifications: ModelNotification[] = [];
  /** Rows of the users service, each as `<table>/<organization>/…`. */
  readonly rows = new Set<string>();
  /** Names of users by `<organization>/<userId>`. */
  readonly names = new Map<string, string>();
  private readonly answers = new Map<string, { request: object; answer: unknown }>();

  /** @returns the status; with OK the expected id, absent when the service creates it */
  addNotification(data: AddNotificationData, idempotencyKey?: string): { status: Expected; id?: string } {
    const kept = idempotencyKey === undefined ? undefined : this.answers.get(`notifications/${idempotencyKey}`);
    if (kept) {
      return isDeepStrictEqual(kept.request, data)
        ? { status: 'OK', id: kept.answer as string }
        : { status: 'FAILED_PRECONDITION' };
    }
    const { organizationId, documentId, notificationId } = data;
    if (data.createOrganization === false && !this.hasOrganization(organizationId)) return { status: 'NOT_FOUND' };
    if (data.createDocument === false && !this.hasDocument(organizationId, documentId)) return { status: 'NOT_FOUND' };
    if (notificationId === undefined) return { status: 'OK' };
    const stored = this.find(organizationId, notificationId);
    if (stored && !isDeepStrictEqual(contentOf(stored), contentOf(data))) return { status: 'ALREADY_EXISTS' };
    this.store(data, notificationId, idempotencyKey);
    return { status: 'OK', id: notificationId };
  }

  /** Records an answer OK. */
  store(data: AddNotificationData, notificationId: string, idempotencyKey?: string): void {
    if (idempotencyKey !== undefined)
      this.answers.set(`notifications/${idempotencyKey}`, { request: data, answer: notificationId });
    if (!this.find(data.organizationId, notificationId)) this.notifications.push({ ...data, notificationId });
  }

  /** @returns the status; with OK the answer by userId */
  addUsers(data: AddUsersData, idempotencyKey?: string): { status: Expected; answer?: unknown } {
    const kept = idempotencyKey === undefined ? undefined : this.answers.get(`users/${idempotencyKey}`);
    if (kept) {
      return isDeepStrictEqual(kept.request, data) ? { status: 'OK', answer: kept.answer } : { status: 'FAILED_PRECONDITION' };
    }
    const { organizationId, documentId, folderId } = data;
    const place =
      documentId !== undefined
        ? `document/${organizationId}/${documentId}`
        : folderId !== undefined
          ? `folder/${organizationId}/${folderId}`
          : undefined;
    this.rows.add(`organization/${organizationId}`);
    if (place) this.rows.add(place);
    const answer = Object.fromEntries(
      data.users.map(({ userId, name }) => {
        const member = `member of ${place ?? `organization/${organizationId}`}/${userId}`;
        const message = this.rows.has(member) ? 'User updated.' : 'User added.';
        this.rows.add(member);
        this.names.set(`${organizationId}/${userId}`, name);
        return [userId, { success: true, id: createHash('md5').update(userId).digest('hex'), message }];
      }),
    );
    if (idempotencyKey !== undefined) this.answers.set(`users/${idempotencyKey}`, { request: data, answer });
    return { status: 'OK', answer };
  }

  /** In order of storing. */
  get({ organizationId, documentId, locationId, userId, notificationIds }: Filter): ModelNotification[] {
    return this.notifications.filter(
      (one) =>
        one.organizationId === organizationId &&
        (documentId === undefined || one.documentId === documentId) &&
        (locationId === undefined || one.locationId === locationId) &&
        (notificationIds === undefined || notificationIds.includes(one.notificationId)) &&
        (userId === undefined || this.isReached(one, userId) || one.notifyUsers?.some((user) => user.userId === userId)),
    );
  }

  find(organizationId: string, notificationId: string): ModelNotification | undefined {
    return this.notifications.find((one) => one.organizationId === organizationId && one.notificationId === notificationId);
  }

  /** Through notifyAll: no document has a folder or is restricted here. */
  private isReached(one: ModelNotification, userId: string): boolean {
    const { organizationId, documentId } = one;
    const places = [`organization/${organizationId}`, `document/${organizationId}/${documentId}`];
    return isToAll(one) && places.some((place) => this.rows.has(`member of ${place}/${userId}`));
  }

  private hasOrganization(organizationId: string): boolean {
    return this.rows.has(`organization/${organizationId}`) || this.get({ organizationId }).length > 0;
  }

  private hasDocument(organizationId: string, documentId: string): boolean {
    return this.rows.has(`document/${organizationId}/${documentId}`) || this.get({ organizationId, documentId }).length > 0;
  }
}

export const isToAll = ({ notifyAll, notifyUsers = [] }: AddNotificationData): boolean => notifyAll ?? notifyUsers.length === 0;

function contentOf({
  notificationId: _id,
  createOrganization: _organization,
  createDocument: _document,
  ...content
}: AddNotificationData) {
  return content;
}
