import { SetDocumentRequest } from './documents.set';
import type { ApiError } from './error';
import type { BodyClass } from './message';
import { DELETE_COMBINATIONS, DeleteNotificationsRequest } from './notifications.delete';
import { UpdateNotificationsRequest } from './notifications.update';
import { DeleteUsersRequest } from './users.delete';
import { EraseUsersRequest } from './users.erase';
import { validateBody } from './validate';

const EITHER = 'must have either notifications, or userId and readUpTo';
const SUPPORTED = `Supported, each with organizationId: ${DELETE_COMBINATIONS.map((filters) => filters.join(' + ')).join('; ')}.`;
const FILTERS = `This combination of filters is not supported. ${SUPPORTED}`;
/** A deletion of a document, by what is no filter there. */
const noFilter = (name: string): [BodyClass<object>, object, string, string, string[]] => {
  const message = `${name} is not a filter of a deletion. ${SUPPORTED}`;
  return [DeleteNotificationsRequest, { documentId: 'd', [name]: 'x' }, `data.${message}`, message, [name]];
};
const each = (...notifications: object[]) => ({ notifications });

/** Rule, fields beside organizationId, message over HTTP, message over AMQP, and the fields that `details` names over AMQP. */
const CASES: [BodyClass<object>, object, string, string, string[]][] = [
  [UpdateNotificationsRequest, {}, `data ${EITHER}`, `The body ${EITHER}`, ['notifications', 'userId', 'readUpTo']],
  [
    UpdateNotificationsRequest,
    { userId: 'u', readUpTo: 1, locationId: 'l' },
    'data.documentId and data.locationId are only allowed together with notifications',
    'documentId and locationId are only allowed together with notifications',
    ['documentId', 'locationId'],
  ],
  [
    UpdateNotificationsRequest,
    each({ id: 'a' }, { id: 'b' }, { id: 'a' }),
    'data.notifications[2].id occurs twice',
    'notifications[2].id occurs twice',
    ['notifications[2].id'],
  ],
  [
    UpdateNotificationsRequest,
    each({ id: 'a', notifyAll: true }),
    'data.notifications[0].notifyAll cannot be changed: delete the notification and add another',
    'notifications[0].notifyAll cannot be changed: delete the notification and add another',
    ['notifications[0].notifyAll'],
  ],
  [
    UpdateNotificationsRequest,
    each({ id: 'a', readByUserIds: ['u'] }, { id: 'b', read: true }),
    'data.notifications[1].read is not a field; did you mean readByUserIds?',
    'notifications[1].read is not a field; did you mean readByUserIds?',
    ['notifications[1].read'],
  ],
  [
    UpdateNotificationsRequest,
    { ...each({ id: 'a', readByUserIds: ['u'] }), documentID: 'd' },
    'data.documentID is not a field; did you mean documentId?',
    'documentID is not a field; did you mean documentId?',
    ['documentID'],
  ],
  [
    UpdateNotificationsRequest,
    { organizationId: 'o', userId: 'u', readUpTo: 1, locationID: 'l' },
    'data.locationID is not a field; did you mean locationId?',
    'locationID is not a field; did you mean locationId?',
    ['locationID'],
  ],
  [
    UpdateNotificationsRequest,
    each({ id: 'a', readByUserIds: ['u', 'v'], unreadByUserIds: ['v'] }),
    'data.notifications[0] has a user in readByUserIds and in unreadByUserIds',
    'notifications[0] has a user in readByUserIds and in unreadByUserIds',
    ['notifications[0]'],
  ],
  [
    UpdateNotificationsRequest,
    each({ id: 'a', readByUserIds: Array.from({ length: 1000 }, (_, n) => `u${n}`) }, { id: 'b', unreadByUserIds: ['u'] }),
    'data.notifications must have at most 1000 users in all their lists',
    'notifications must have at most 1000 users in all their lists',
    ['notifications'],
  ],
  [
    DeleteNotificationsRequest,
    { notificationIds: ['a'], pageToken: 'WzFd' },
    'data.pageToken is not allowed together with notificationIds',
    'pageToken is not allowed together with notificationIds',
    ['pageToken'],
  ],
  [
    DeleteNotificationsRequest,
    { documentId: 'd', notificationId: 'a' },
    'data.notificationId is not a field; did you mean notificationIds?',
    'notificationId is not a field; did you mean notificationIds?',
    ['notificationId'],
  ],
  [
    DeleteNotificationsRequest,
    { notificationId: 'a' },
    'data.notificationId is not a field; did you mean notificationIds?',
    'notificationId is not a field; did you mean notificationIds?',
    ['notificationId'],
  ],
  ...['userId', 'userIds', 'user_id', 'id', 'ids'].map(noFilter),
  [DeleteNotificationsRequest, { locationId: 'l' }, FILTERS, FILTERS, ['locationId']],
  [DeleteNotificationsRequest, {}, FILTERS, FILTERS, ['documentId']],
  [
    DeleteUsersRequest,
    { userIds: ['u'], document_id: 'd' },
    'data.document_id is not a field; did you mean documentId?',
    'document_id is not a field; did you mean documentId?',
    ['document_id'],
  ],
  [
    DeleteUsersRequest,
    { userIds: ['u'], docId: 'd' },
    'data.docId is not a field; did you mean documentId?',
    'docId is not a field; did you mean documentId?',
    ['docId'],
  ],
  [
    DeleteNotificationsRequest,
    { documentId: 'd', NotifIds: ['a'] },
    'data.NotifIds is not a field; did you mean notificationIds?',
    'NotifIds is not a field; did you mean notificationIds?',
    ['NotifIds'],
  ],
  [
    SetDocumentRequest,
    { documentId: 'd', accessType: 'restricted' },
    'data.accessType is not a field; did you mean access?',
    'accessType is not a field; did you mean access?',
    ['accessType'],
  ],
  [
    EraseUsersRequest,
    { userIds: ['u'] },
    'data.organizationId is not a field; did you mean organizationIds?',
    'organizationId is not a field; did you mean organizationIds?',
    ['organizationId'],
  ],
];

const problemOf = (type: BodyClass<object>, value: object, path?: string) => {
  try {
    validateBody(type, { organizationId: 'o', ...value }, path);
    return undefined;
  } catch (error) {
    return (error as ApiError).toBody();
  }
};

describe('a rule over several fields', () => {
  it.each(CASES)('of %p names fields as their caller sends them: %#', (type, value, overHttp, overAmqp, fields) => {
    const status = 'INVALID_ARGUMENT';
    expect(problemOf(type, value, 'data')).toEqual({
      status,
      message: overHttp,
      details: [{ field: 'data', message: overHttp }],
    });
    expect(problemOf(type, value)).toEqual({
      status,
      message: overAmqp,
      details: fields.map((field) => ({ field, message: overAmqp })),
    });
  });
  it.each([
    [DeleteUsersRequest, { userIds: ['u'], id: 'x', note: 'x', at: 1, unit: 'x' }],
    [DeleteNotificationsRequest, { documentId: 'd', idea: 'x', folderId: 'x', username: 'x' }],
    [UpdateNotificationsRequest, each({ id: 'a', read: true, readByUserIds: ['u'], persistReadForUsers: true })],
    [SetDocumentRequest, { documentId: 'd', id: 'x', name: 'x', cc: 'x', older: true }],
  ])('of %p ignores other unknown fields', (type, value) => {
    expect(problemOf(type, value)).toBeUndefined();
  });

  it('of an update compares a bounded number of names', () => {
    const unknown = Object.fromEntries(Array.from({ length: 100 }, (_, n) => [`x${n}`, 0]));
    const withUnknown = (length: number) => Array.from({ length }, (_, n) => ({ id: `n${n}`, ...unknown }));
    const misspelt = { id: 'last', read: true };
    expect(problemOf(UpdateNotificationsRequest, each(...withUnknown(90), misspelt))).toBeDefined();
    expect(problemOf(UpdateNotificationsRequest, each(...withUnknown(100), misspelt))).toBeUndefined();
  });
});
