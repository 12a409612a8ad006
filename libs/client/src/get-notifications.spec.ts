import { FILTER_COMBINATIONS, GetNotificationsRequest } from '@app/contracts/notifications.get';
import { ApiError } from '@app/contracts/error';
import { validateBody } from '@app/contracts/validate';
import type { Operations } from './operations';

type Request = Operations['notifications.get.v1']['request'];

const documentId = 'd';
const locationId = 'l';
const userId = 'u';
const notificationIds = ['n'];
const rest = { organizationId: 'o', order: 'asc', pageSize: 10, pageToken: undefined } as const;

/** The type check of the project fails when one of them does not compile. */
const supported: Request[] = [
  { ...rest, documentId },
  { ...rest, documentId, notificationIds },
  { ...rest, documentId, locationId },
  { ...rest, documentId, locationId, notificationIds },
  { ...rest, userId },
  { ...rest, userId, notificationIds },
  { ...rest, documentId, userId },
  { ...rest, locationId, userId },
  { ...rest, documentId, locationId, userId },
];

/** The type check fails as well when one of them compiles. */
const impossible: Request[] = [
  // @ts-expect-error no filter
  { ...rest },
  // @ts-expect-error only ids
  { ...rest, notificationIds },
  // @ts-expect-error only a location
  { ...rest, locationId },
  // @ts-expect-error ids at a location
  { ...rest, locationId, notificationIds },
  // @ts-expect-error ids of a user in a document
  { ...rest, documentId, userId, notificationIds },
  // @ts-expect-error ids of a user at a location
  { ...rest, locationId, userId, notificationIds },
  // @ts-expect-error all filters
  { ...rest, documentId, locationId, userId, notificationIds },
];

describe('the type of notifications.get.v1 in the client', () => {
  it('has every combination of filters, and takes those that the service accepts', () => {
    expect(supported).toHaveLength(FILTER_COMBINATIONS.length);
    expect(supported.length + impossible.length).toBe(2 ** 4);
    for (const request of supported)
      expect(validateBody(GetNotificationsRequest, request)).toMatchObject({ organizationId: 'o' });
    for (const request of impossible) expect(() => validateBody(GetNotificationsRequest, request)).toThrow(ApiError);
  });
});
