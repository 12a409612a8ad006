import * as fc from 'fast-check';
import type { Operation } from '@app/testing/system/system';

/** A call of an operation that removes, marks or reads. */
export interface Intrusion {
  door: 'http' | 'queue';
  operation: Operation;
  data: object;
}

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
  // One for each operation: a further one does not compile without.
  const attacks: Record<Operation, fc.Arbitrary<object>> = {
    'users/add': fc.record({
      organizationId,
      ...level,
      users: some(ids.users).map((all) => all.map((one) => ({ userId: one }))),
    }),
    'notifications/add': fc.record({
      organizationId,
      documentId,
      locationId: optional(locationId),
      notificationId: of(ids.notifications),
      actionUser: fc.record({ userId }),
      displayHeadlineMessageTemplate: fc.constant('of the intruder'),
      notifyUsers: fc.uniqueArray(userId).map((all) => all.map((one) => ({ userId: one }))),
      notifyAll: fc.boolean(),
    }),
    'notifications/get': fc.record({ organizationId, documentId }),
    'users/get': fc.record({ organizationId, ...level }),
    'users/delete': fc.record({ organizationId, ...level, userIds: some(ids.users) }),
    'users/data/delete': fc.record({ userIds: some(ids.users), organizationIds: optional(some(ids.organizations)) }),
    'documents/set': fc.record({
      organizationId,
      documentId,
      folderId: level.folderId,
      access: fc.constantFrom('public', 'organizationPrivate', 'restricted'),
    }),
    'notifications/inbox': fc.record({
      organizationId,
      userId,
      documentId: optional(documentId),
      unread: optional(fc.boolean()),
    }),
    'notifications/update': fc.oneof(
      fc.record({ organizationId, userId, readUpTo: fc.constantFrom(0, Number.MAX_SAFE_INTEGER) }),
      fc.record({
        organizationId,
        notifications: notificationIds.chain((all) =>
          fc.tuple(...all.map((id) => fc.record({ id: fc.constant(id), readByUserIds: some(ids.users) }))),
        ),
      }),
    ),
    'notifications/delete': fc.oneof(
      fc.record({ organizationId, documentId }),
      fc.record({ organizationId, documentId, locationId }),
      fc.record({ organizationId, notificationIds }),
      fc.record({ organizationId, documentId, notificationIds }),
    ),
  };
  return fc.oneof(
    ...Object.entries(attacks).map(([operation, data]) =>
      fc.record({
        door: fc.constantFrom('http' as const, 'queue' as const),
        operation: fc.constant(operation as Operation),
        data,
      }),
    ),
  );
}
