import * as fc from 'fast-check';

/** A call of an operation that removes, marks or reads. */
export interface Intrusion {
  door: 'http' | 'queue';
  operation: keyof typeof PATTERNS;
  data: object;
}

/** Operations of the tenant without a model, and the patterns of their messages. */
export const PATTERNS = {
  'users/add': 'users.add.v1',
  'users/get': 'users.get.v1',
  'users/delete': 'users.delete.v1',
  'users/data/delete': 'users.erase.v1',
  'documents/set': 'documents.set.v1',
  'notifications/add': 'notifications.add.v1',
  'notifications/inbox': 'notifications.inbox.v1',
  'notifications/update': 'notifications.update.v1',
  'notifications/delete': 'notifications.delete.v1',
} as const;

/** The ids that all tenants use. */
export interface Ids {
  organizations: readonly string[];
  documents: readonly string[];
  locations: readonly string[];
  folders: readonly string[];
  users: readonly string[];
  notifications: readonly string[];
}

const optional = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: undefined });

/** Valid calls with the ids of other tenants, which take out of the own data whatever is there. */
export function intrusionsOn(ids: Ids): fc.Arbitrary<Intrusion> {
  const of = (list: readonly string[]) => fc.constantFrom(...list);
  const some = (list: readonly string[]) => fc.uniqueArray(of(list), { minLength: 1 });
  const organizationId = of(ids.organizations);
  const documentId = of(ids.documents);
  const locationId = of(ids.locations);
  const userId = of(ids.users);
  const notificationIds = some(ids.notifications);
  const level = { documentId: optional(documentId), folderId: optional(of(ids.folders)) };
  const call = <T extends object>(operation: Intrusion['operation'], data: fc.Arbitrary<T>): fc.Arbitrary<Intrusion> =>
    fc.record({ door: fc.constantFrom('http' as const, 'queue' as const), operation: fc.constant(operation), data });

  return fc.oneof(
    call(
      'users/add',
      fc.record({ organizationId, ...level, users: some(ids.users).map((all) => all.map((one) => ({ userId: one }))) }),
    ),
    call(
      'notifications/add',
      fc.record({
        organizationId,
        documentId,
        locationId: optional(locationId),
        notificationId: of(ids.notifications),
        actionUser: fc.record({ userId }),
        displayHeadlineMessageTemplate: fc.constant('of the intruder'),
        notifyUsers: fc.uniqueArray(userId).map((all) => all.map((one) => ({ userId: one }))),
        notifyAll: fc.boolean(),
      }),
    ),
    call('users/get', fc.record({ organizationId, ...level })),
    call('users/delete', fc.record({ organizationId, ...level, userIds: some(ids.users) })),
    call('users/data/delete', fc.record({ userIds: some(ids.users), organizationIds: optional(some(ids.organizations)) })),
    call(
      'documents/set',
      fc.record({
        organizationId,
        documentId,
        folderId: level.folderId,
        access: fc.constantFrom('public', 'organizationPrivate', 'restricted'),
      }),
    ),
    call(
      'notifications/inbox',
      fc.record({ organizationId, userId, documentId: optional(documentId), unread: optional(fc.boolean()) }),
    ),
    call(
      'notifications/update',
      fc.oneof(
        fc.record({ organizationId, userId, readUpTo: fc.constantFrom(0, Number.MAX_SAFE_INTEGER) }),
        fc.record({
          organizationId,
          notifications: notificationIds.chain((all) =>
            fc.tuple(...all.map((id) => fc.record({ id: fc.constant(id), readByUserIds: some(ids.users) }))),
          ),
        }),
      ),
    ),
    call(
      'notifications/delete',
      fc.oneof(
        fc.record({ organizationId, documentId }),
        fc.record({ organizationId, documentId, locationId }),
        fc.record({ organizationId, notificationIds }),
        fc.record({ organizationId, documentId, notificationIds }),
      ),
    ),
  );
}
