import type { ApiError } from './error';
import type { BodyClass } from './message';
import { DeleteNotificationsRequest } from './notifications.delete';
import { InboxRequest } from './notifications.inbox';
import { UpdateNotificationsRequest } from './notifications.update';
import { EraseUsersRequest } from './users.erase';
import { validateBody } from './validate';

const ids = (count: number) => Array.from({ length: count }, (_, n) => `u${n}`);
const organizationId = 'o';

/** The class, the greatest number that it accepts, a body with a number, and the problem of one more. */
const LIMITS: [BodyClass<object>, number, (count: number) => object, string][] = [
  [
    UpdateNotificationsRequest,
    1000,
    (count) => ({
      organizationId,
      notifications: [
        { id: 'a', readByUserIds: ids(400), unreadByUserIds: ['v'] },
        { id: 'b', unreadByUserIds: ids(count - 401) },
      ],
    }),
    'notifications must have at most 1000 users in all their lists',
  ],
  [
    UpdateNotificationsRequest,
    1000,
    (count) => ({ organizationId, notifications: ids(count).map((id) => ({ id })) }),
    'notifications must have at most 1000 entries',
  ],
  [EraseUsersRequest, 100, (count) => ({ userIds: ids(count) }), 'userIds must have at most 100 entries'],
  [
    EraseUsersRequest,
    1000,
    (count) => ({ userIds: ['u'], organizationIds: ids(count) }),
    'organizationIds must have at most 1000 entries',
  ],
  [
    DeleteNotificationsRequest,
    256,
    (pageSize) => ({ organizationId, documentId: 'd', pageSize }),
    'pageSize must be a whole number from 1 to 256',
  ],
  [
    InboxRequest,
    1000,
    (pageSize) => ({ organizationId, userId: 'u', pageSize }),
    'pageSize must be a whole number from 0 to 1000',
  ],
];

describe('a limit', () => {
  it.each(LIMITS)('of %p: %d are accepted, and one more is not', (type, most, bodyWith, message) => {
    expect(validateBody(type, bodyWith(most))).toEqual(bodyWith(most));
    expect(() => validateBody(type, bodyWith(most + 1))).toThrow(
      expect.objectContaining<Partial<ApiError>>({ status: 'INVALID_ARGUMENT', message }),
    );
  });

  it('of users in all lists of an update counts a user once who is twice in one list', () => {
    const twice = [...ids(500), ...ids(500)];
    const notifications = [
      { id: 'a', readByUserIds: twice },
      { id: 'b', unreadByUserIds: twice },
    ];
    const body = { organizationId, notifications };
    expect(validateBody(UpdateNotificationsRequest, body)).toEqual(body);
    const more = { organizationId, notifications: [...notifications, { id: 'c', readByUserIds: ['u0', 'u0'] }] };
    expect(() => validateBody(UpdateNotificationsRequest, more)).toThrow('notifications must have at most 1000 users in all');
  });
});
