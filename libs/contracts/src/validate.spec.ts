import type { ApiError } from './error';
import { AddNotificationRequest } from './notifications.add';
import { FILTER_COMBINATIONS, GetNotificationsRequest } from './notifications.get';
import type { BodyClass } from './message';
import { AddUsersRequest } from './users.add';
import { validateBody } from './validate';

function problemOf(type: BodyClass<object>, value: unknown): ApiError | undefined {
  try {
    validateBody(type, value, 'data');
    return undefined;
  } catch (error) {
    return error as ApiError;
  }
}

const user = { userId: 'u1' };
const users = { organizationId: 'org', users: [user] };
const notification = { organizationId: 'org', documentId: 'doc', actionUser: user, displayHeadlineMessageTemplate: 'Hello' };

describe(validateBody.name, () => {
  it.each<[string, BodyClass<object>, unknown, string]>([
    ['no object', AddUsersRequest, [], 'data must be an object'],
    ['null', AddUsersRequest, null, 'data must be an object'],
    ['a missing field', AddUsersRequest, { users: [user] }, 'data.organizationId is required and must be a string'],
    [
      'a misspelt field',
      AddUsersRequest,
      { ...users, organizationId: undefined, organisationId: 'org' },
      'data.organizationId is required and must be a string; organisationId is not a field',
    ],
    [
      'a misspelt field of an entry',
      AddUsersRequest,
      { ...users, users: [{ userID: 'u1' }] },
      'data.users[0].userId is required and must be a string; userID is not a field',
    ],
    ['a wrong type', AddUsersRequest, { ...users, organizationId: 5 }, 'data.organizationId must be a string'],
    ['null for absent', AddUsersRequest, { ...users, folderId: null }, 'data.folderId must be a string'],
    ['a blank identifier', AddUsersRequest, { ...users, organizationId: ' \u00a0' }, 'data.organizationId must not be blank'],
    [
      'an identifier of 257 bytes',
      AddUsersRequest,
      { ...users, organizationId: 'é'.repeat(128) + 'x' },
      'data.organizationId must be at most 256 bytes of UTF-8',
    ],
    [
      'a control character',
      AddUsersRequest,
      { ...users, documentId: 'a\nb' },
      'data.documentId must not contain control characters',
    ],
    ['no users', AddUsersRequest, { ...users, users: [] }, 'data.users must not be empty'],
    ['users that are no array', AddUsersRequest, { ...users, users: user }, 'data.users must be an array'],
    ['1001 users', AddUsersRequest, { ...users, users: Array(1001).fill(user) }, 'data.users must have at most 1000 entries'],
    ['a null entry', AddUsersRequest, { ...users, users: [user, null] }, 'data.users[1] must be an object'],
    ['an entry that is an array', AddUsersRequest, { ...users, users: [[user]] }, 'data.users[0] must be an object'],
    ['a wrong userId', AddUsersRequest, { ...users, users: [user, { userId: 7 }] }, 'data.users[1].userId must be a string'],
    ['a missing userId', AddUsersRequest, { ...users, users: [{}] }, 'data.users[0].userId is required and must be a string'],
    [
      'a name that is no string',
      AddUsersRequest,
      { ...users, users: [{ userId: 'u', name: {} }] },
      'data.users[0].name must be a string',
    ],
    [
      'a missing actionUser',
      AddNotificationRequest,
      { ...notification, actionUser: undefined },
      'data.actionUser is required and must be an object',
    ],
    [
      'an actionUser that is a string',
      AddNotificationRequest,
      { ...notification, actionUser: 'u' },
      'data.actionUser must be an object',
    ],
    [
      'an actionUser without userId',
      AddNotificationRequest,
      { ...notification, actionUser: {} },
      'data.actionUser.userId is required and must be a string',
    ],
    [
      'an empty template',
      AddNotificationRequest,
      { ...notification, displayHeadlineMessageTemplate: '' },
      'data.displayHeadlineMessageTemplate must not be empty',
    ],
    [
      'a long body message',
      AddNotificationRequest,
      { ...notification, displayBodyMessage: '😀'.repeat(10_001) },
      'data.displayBodyMessage must be at most 10000 characters',
    ],
    [
      'template data that is an array',
      AddNotificationRequest,
      { ...notification, displayHeadlineMessageTemplateData: [] },
      'data.displayHeadlineMessageTemplateData must be an object',
    ],
    [
      'a custom value that is a number',
      AddNotificationRequest,
      { ...notification, displayHeadlineMessageTemplateData: { place: 5 } },
      'data.displayHeadlineMessageTemplateData.place must be a string',
    ],
    [
      'a template actionUser that is a string',
      AddNotificationRequest,
      { ...notification, displayHeadlineMessageTemplateData: { actionUser: 'u' } },
      'data.displayHeadlineMessageTemplateData.actionUser must be an object',
    ],
    [
      'a template recipientUser without userId',
      AddNotificationRequest,
      { ...notification, displayHeadlineMessageTemplateData: { recipientUser: {} } },
      'data.displayHeadlineMessageTemplateData.recipientUser.userId is required and must be a string',
    ],
    [
      'too much source data',
      AddNotificationRequest,
      { ...notification, notificationSourceData: { x: 'é'.repeat(33_000) } },
      'data.notificationSourceData must be at most 65536 bytes of UTF-8 as JSON',
    ],
    [
      'a flag that is a string',
      AddNotificationRequest,
      { ...notification, notifyAll: 'true' },
      'data.notifyAll must be a boolean',
    ],
    [
      'notifyUsers of strings',
      AddNotificationRequest,
      { ...notification, notifyUsers: ['u'] },
      'data.notifyUsers[0] must be an object',
    ],
    [
      'a blank id in a list',
      GetNotificationsRequest,
      { organizationId: 'o', userId: 'u', notificationIds: ['a', ' '] },
      'data.notificationIds[1] must not be blank',
    ],
    [
      'a page size of 0',
      GetNotificationsRequest,
      { organizationId: 'o', userId: 'u', pageSize: 0 },
      'data.pageSize must be a whole number from 1 to 1000',
    ],
    [
      'a broken page token',
      GetNotificationsRequest,
      { organizationId: 'o', userId: 'u', pageToken: 'abc' },
      'data.pageToken must be a token that an earlier page of this operation returned',
    ],
    [
      'an unknown order',
      GetNotificationsRequest,
      { organizationId: 'o', userId: 'u', order: 'up' },
      'data.order must be one of: asc, desc',
    ],
  ])('refuses %s and names the path', (_, type, value, message) => {
    const problem = problemOf(type, value);
    expect(problem).toMatchObject({ status: 'INVALID_ARGUMENT', message });
    expect(problem?.details?.[0]?.message).toBe(message);
    expect(message.startsWith(problem?.details?.[0]?.field ?? '?')).toBe(true);
  });

  it('states the first problem and lists at most 20', () => {
    const problem = problemOf(AddUsersRequest, { ...users, users: Array(50).fill({}) });
    expect(problem?.message).toBe('data.users[0].userId is required and must be a string');
    expect(problem?.details).toHaveLength(20);
  });

  it('lists the keys of a body once, for any number of missing fields', () => {
    const ownKeys = jest.fn<string[], [object]>(Object.keys);
    const value = new Proxy({ organisationId: 'org', documentID: 'doc' }, { ownKeys });
    expect(problemOf(AddNotificationRequest, value)?.details?.map(({ message }) => message)).toEqual([
      'data.organizationId is required and must be a string; organisationId is not a field',
      'data.documentId is required and must be a string; documentID is not a field',
      'data.actionUser is required and must be an object',
      'data.displayHeadlineMessageTemplate is required and must be a string',
    ]);
    expect(ownKeys).toHaveBeenCalledTimes(1);
  });

  describe('a long list', () => {
    /** Entries that count how often they are looked at. */
    const watched = (isValid: (index: number) => boolean) => {
      const looks = Array.from({ length: 1000 }, () => 0);
      const entries = looks.map((_, index) => ({
        get userId() {
          looks[index]++;
          return isValid(index) ? `u${index}` : undefined;
        },
      }));
      return { looks, value: { organizationId: 'org', users: entries } };
    };

    it('is judged up to its 20th problem', () => {
      const { looks, value } = watched(() => false);
      expect(problemOf(AddUsersRequest, value)?.details).toHaveLength(20);
      expect(looks.slice(20).every((count) => count === 0)).toBe(true);
    });

    it('has its valid entries checked twice, and problems at the places of the others', () => {
      const wrong = [3, 500, 998];
      const { looks, value } = watched((index) => !wrong.includes(index));
      expect(problemOf(AddUsersRequest, value)?.details?.map(({ field }) => field)).toEqual(
        wrong.map((index) => `data.users[${index}].userId`),
      );
      expect(Math.max(...looks.filter((_, index) => !wrong.includes(index)))).toBe(2);
    });

    it('may be valid beside another problem', () => {
      const { value } = watched(() => true);
      expect(problemOf(AddUsersRequest, { ...value, organizationId: '' })?.details).toEqual([
        { field: 'data.organizationId', message: 'data.organizationId must not be blank' },
      ]);
    });
  });

  it('accepts long and exotic identifiers, and drops unknown fields', () => {
    const body = validateBody(AddUsersRequest, {
      organizationId: 'é'.repeat(128),
      later: true,
      users: [{ userId: '__proto__', later: 1 }, { userId: '👩‍👩‍👧' }],
    });
    expect(JSON.parse(JSON.stringify(body))).toEqual({
      organizationId: 'é'.repeat(128),
      users: [{ userId: '__proto__' }, { userId: '👩‍👩‍👧' }],
    });
  });

  it('keeps template and source data unchanged', () => {
    const data = { actionUser: { userId: 'a', extra: [1] }, recipientUser: 'everyone', place: 'x', empty: '', toString: 't' };
    const source = { a: [{ b: null }], n: 1.5, f: false, valueOf: 1, hasOwnProperty: { __defineGetter__: 'x' } };
    const body = validateBody(AddNotificationRequest, {
      ...notification,
      displayHeadlineMessageTemplateData: data,
      notificationSourceData: source,
    });
    expect(body.displayHeadlineMessageTemplateData).toEqual(data);
    expect(body.notificationSourceData).toEqual(source);
  });

  describe('of filters', () => {
    const values = { documentId: 'd', locationId: 'l', userId: 'u', notificationIds: ['n'] };
    const names = Object.keys(values) as (keyof typeof values)[];
    const sets = Array.from({ length: 16 }, (_, bits) => names.filter((__, index) => bits & (1 << index)));

    it.each(sets.map((filters) => [filters.join(' + ') || 'none', filters] as const))('judges %s', (_, filters) => {
      const supported = FILTER_COMBINATIONS.some(
        (one) => one.length === filters.length && one.every((name) => filters.includes(name)),
      );
      const request = { organizationId: 'o', ...Object.fromEntries(filters.map((name) => [name, values[name]])) };
      const problem = problemOf(GetNotificationsRequest, request);
      if (supported) return expect(problem).toBeUndefined();
      expect(problem?.message).toContain('documentId + locationId + notificationIds');
      expect(problem?.details).toEqual([{ field: 'data', message: problem?.message }]);
      // Without `data` around it each filter is named, and a missing one when there is none.
      expect(() => validateBody(GetNotificationsRequest, request)).toThrow(
        expect.objectContaining({
          details: (filters.length > 0 ? filters : ['documentId', 'userId']).map((field) => ({
            field,
            message: problem?.message,
          })),
        }),
      );
    });

    it('supports exactly nine sets', () => {
      expect(FILTER_COMBINATIONS).toHaveLength(9);
    });
  });
});
