import * as fc from 'fast-check';
import { DELETE_COMBINATIONS } from '@app/contracts/notifications.delete';
import { FILTER_COMBINATIONS } from '@app/contracts/notifications.get';
import type { Operation } from '@app/testing/system/system';

/** All tenants use the same ids and keys. */
export const ORGANIZATIONS = ['org a', 'org b'];
const DOCUMENTS = ['doc a', 'doc b'];
const LOCATIONS = ['location a', 'location b'];
const FOLDERS = ['folder a', 'folder b'];
export const USERS = ['user a', 'user b', 'user c'];
const IDS = ['id a', 'id b', 'id c', 'id d', 'id e', 'id f', 'id g', 'id h'];
const KEYS = ['key a', 'key b', 'key c', 'key d', 'key e', 'key f'];
const VARIANTS = ['1', '2'];

export type Door = 'http' | 'queue';

export interface User {
  userId: string;
  name: string;
}
export interface Level {
  organizationId: string;
  documentId?: string;
  folderId?: string;
}

/** The requests of each operation, before the names of a run and of a tenant are put in. */
export interface Data {
  'users/add': Level & { users: User[] };
  'users/get': Level & { userIds?: string[]; pageSize?: number };
  'users/delete': Level & { userIds: string[] };
  'users/data/delete': { userIds: string[]; organizationIds?: string[] };
  'documents/set': { organizationId: string; documentId: string; folderId?: string; access?: string };
  'notifications/add': {
    organizationId: string;
    documentId: string;
    locationId?: string;
    notificationId?: string;
    actionUser: User;
    displayHeadlineMessageTemplate: string;
    notifyUsers?: User[];
    notifyAll?: boolean;
    createOrganization?: boolean;
    createDocument?: boolean;
  };
  'notifications/get': {
    filter: {
      organizationId: string;
      documentId?: string;
      locationId?: string;
      userId?: string;
      notificationIds?: string[];
    };
    order?: 'asc' | 'desc';
    pageSize?: number;
    foreignToken: boolean;
  };
  'notifications/inbox': {
    organizationId: string;
    userId: string;
    documentId?: string;
    locationId?: string;
    unread?: boolean;
    pageSize?: number;
  };
  'notifications/update':
    | {
        organizationId: string;
        documentId?: string;
        locationId?: string;
        notifications: { id: string; readByUserIds?: string[]; unreadByUserIds?: string[] }[];
      }
    /** `now`, or the time of a notification: its place, counted back from the newest. */
    | { organizationId: string; userId: string; upTo: 'now' | number };
  'notifications/delete': {
    organizationId: string;
    documentId?: string;
    locationId?: string;
    notificationIds?: string[];
  };
}
export type DataOf<O extends Operation> = Data[O];

type StepOf<O extends Operation> = { door: Door; operation: O; data: Data[O]; idempotencyKey?: string };
export type Call = { [O in Operation]: StepOf<O> }[Operation];
/** `repeat` repeats an earlier call that stores or removes: its index, counted back. */
export type Step = Call | { operation: 'repeat'; door: Door; back: number };

/** Absent once in this number of times. */
const optional = <T>(arbitrary: fc.Arbitrary<T>, freq = 2) => fc.option(arbitrary, { nil: undefined, freq });
const of = (list: readonly string[]) => fc.constantFrom(...list);
const some = (list: readonly string[], minLength = 1) => fc.uniqueArray(of(list), { minLength, maxLength: 4 });
const users = (minLength: number) =>
  fc.tuple(some(USERS, minLength), of(VARIANTS)).map(([ids, variant]) => ids.map((userId) => ({ userId, name: variant })));
const [organizationId, documentId, locationId, userId] = [ORGANIZATIONS, DOCUMENTS, LOCATIONS, USERS].map(of);
const level = { organizationId, documentId: optional(documentId), folderId: optional(of(FOLDERS)) };
const pageSize = optional(fc.integer({ min: 1, max: 3 }));

const chosen = (combinations: readonly (readonly string[])[]) =>
  fc
    .tuple(fc.record({ organizationId, documentId, locationId, userId }), some(IDS, 0), fc.constantFrom(...combinations))
    .map(([{ organizationId: organization, ...others }, notificationIds, names]) => ({
      organizationId: organization,
      ...Object.fromEntries(Object.entries({ ...others, notificationIds }).filter(([name]) => names.includes(name))),
    }));

const update = some(IDS).chain((ids) =>
  fc.tuple(
    ...ids.map((id) =>
      fc.tuple(some(USERS, 0), some(USERS, 0)).map(([read, unread]) => ({
        id,
        readByUserIds: read,
        unreadByUserIds: unread.filter((user) => !read.includes(user)),
      })),
    ),
  ),
);

/** One for each operation: a further one does not compile without. */
const DATA: { [O in Operation]: fc.Arbitrary<Data[O]> } = {
  'users/add': fc.record({ ...level, users: users(1) }),
  'users/get': fc.record({ ...level, userIds: optional(some(USERS, 0)), pageSize }),
  'users/delete': fc.record({ ...level, userIds: some(USERS) }),
  'users/data/delete': fc.record({ userIds: some(USERS), organizationIds: optional(some(ORGANIZATIONS)) }),
  'documents/set': fc.record({
    organizationId,
    documentId,
    folderId: level.folderId,
    access: optional(of(['public', 'organizationPrivate', 'restricted']), 4),
  }),
  'notifications/add': fc.record({
    organizationId,
    documentId,
    locationId: optional(locationId),
    notificationId: optional(of(IDS), 3),
    actionUser: userId.map((one) => ({ userId: one, name: '' })),
    displayHeadlineMessageTemplate: of(VARIANTS),
    notifyUsers: optional(users(0)),
    notifyAll: optional(fc.boolean()),
    createOrganization: optional(fc.boolean()),
    createDocument: optional(fc.boolean()),
  }),
  'notifications/get': fc.record({
    filter: chosen(FILTER_COMBINATIONS),
    order: optional(fc.constantFrom('asc' as const, 'desc' as const)),
    pageSize,
    foreignToken: fc.boolean(),
  }),
  'notifications/inbox': fc.record({
    organizationId,
    userId,
    documentId: optional(documentId),
    locationId: optional(locationId),
    unread: optional(fc.boolean()),
    pageSize: optional(fc.integer({ min: 0, max: 3 })),
  }),
  'notifications/update': fc.oneof(
    fc.record({ organizationId, documentId: optional(documentId), notifications: update }),
    fc.record({ organizationId, userId, upTo: fc.oneof(fc.constant('now' as const), fc.nat(5)) }),
  ),
  'notifications/delete': chosen(DELETE_COMBINATIONS),
};

const stepOf = <O extends Operation>(operation: O): fc.Arbitrary<Step> =>
  fc.record({
    door: fc.constantFrom<Door>('http', 'queue'),
    operation: fc.constant(operation),
    data: DATA[operation],
    idempotencyKey: ['users/add', 'users/delete', 'notifications/add'].includes(operation)
      ? optional(of(KEYS))
      : fc.constant(undefined),
  }) as fc.Arbitrary<Step>;

const READS = ['users/get', 'notifications/get', 'notifications/inbox'] as const;
const CHANGES = ['users/delete', 'documents/set', 'notifications/update', 'notifications/delete'] as const;
const weighted = (weight: number, operations: readonly Operation[]) =>
  operations.map((operation) => ({ weight, arbitrary: stepOf(operation) }));

const step = fc.oneof(
  {
    weight: 2,
    arbitrary: fc.record({ operation: fc.constant('repeat' as const), door: of(['http', 'queue']), back: fc.nat(3) }),
  },
  ...weighted(7, ['notifications/add']),
  ...weighted(4, ['users/add']),
  ...weighted(3, READS),
  ...weighted(2, CHANGES),
) as fc.Arbitrary<Step>;

const steps = (most: number) => fc.array(step, { minLength: most / 2, maxLength: most, size: 'max' });
const additions = fc.array(fc.oneof(stepOf('notifications/add'), stepOf('users/add')), {
  minLength: 12,
  maxLength: 12,
  size: 'max',
});

/** In every run, because chance would leave them out in some: an add to an organization that is not there, and a mark that is stored. */
const certain = stepOf('notifications/add').map((one): Step[] => {
  const { door, data } = one as StepOf<'notifications/add'>;
  const [notificationId] = IDS;
  const notifications = [{ id: notificationId, readByUserIds: [USERS[0]], unreadByUserIds: [] }];
  const add = (more: object) => ({ ...one, data: { ...data, ...more } }) as Step;
  return [
    add({ createOrganization: false }),
    add({ notificationId, createOrganization: true, createDocument: true }),
    { door, operation: 'notifications/update', data: { organizationId: data.organizationId, notifications } },
  ];
});

/** The calls of a tenant. Its erasure is between two halves of the others, because it waits for the end. */
export const program = (most: number): fc.Arbitrary<Step[]> =>
  fc
    .tuple(certain, additions, steps(most / 2), stepOf('users/data/delete'), steps(most / 2))
    .map(([first, added, before, erasure, after]) => [...first, ...added, ...before, erasure, ...after]);

/** Calls of a tenant that stores nothing but documents: it reads, marks, removes, deletes and erases with the ids of the others. */
export const intrusions = (length: number): fc.Arbitrary<Step[]> =>
  fc.array(fc.oneof(...weighted(1, [...READS, ...CHANGES, 'users/data/delete'])), {
    minLength: length,
    maxLength: length,
    size: 'max',
  });
