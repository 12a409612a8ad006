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
  const expectProblem = (type: BodyClass<object>, value: unknown, message: string) => {
    const problem = problemOf(type, value);
    expect(problem).toMatchObject({ status: 'INVALID_ARGUMENT', message });
    expect(problem?.details?.[0]?.message).toBe(message);
    expect(message.startsWith(problem?.details?.[0]?.field ?? '?')).toBe(true);
  };

  it.each([
    ['no object', []],
    ['null', null],
  ])('refuses %s for a body', (_, value) => expectProblem(AddUsersRequest, value, 'data must be an object'));

  it('says that a missing body is required', () =>
    expectProblem(AddUsersRequest, undefined, 'data is required and must be an object'));

  it.each<[string, object, string]>([
    ['a missing field', { organizationId: undefined }, 'organizationId is required and must be a string'],
    [
      'a misspelt field',
      { organizationId: undefined, organisationId: 'org' },
      'organizationId is required and must be a string; organisationId is not a field',
    ],
    [
      'a misspelt field of an entry',
      { users: [{ userID: 'u1' }] },
      'users[0].userId is required and must be a string; userID is not a field',
    ],
    [
      'a body as over HTTP',
      { organizationId: undefined, users: undefined, data: { organizationId: 'org', users: [] } },
      'organizationId is required and must be a string; data is not a field',
    ],
    [
      'a name that is too long for a misspelling',
      { organizationId: undefined, [`organizationId${'x'.repeat(60)}`]: 'org' },
      'organizationId is required and must be a string',
    ],
    ['a wrong type', { organizationId: 5 }, 'organizationId must be a string'],
    ['null for absent', { folderId: null }, 'folderId must be a string'],
    ['a blank identifier', { organizationId: ' \u00a0' }, 'organizationId must not be blank'],
    [
      'an identifier of 257 bytes',
      { organizationId: 'é'.repeat(128) + 'x' },
      'organizationId must be at most 256 bytes of UTF-8',
    ],
    ['a control character', { documentId: 'a\nb' }, 'documentId must not contain control characters'],
    ['no users', { users: [] }, 'users must not be empty'],
    ['users that are no array', { users: user }, 'users must be an array'],
    ['1001 users', { users: Array(1001).fill(user) }, 'users must have at most 1000 entries'],
    ['a null entry', { users: [user, null] }, 'users[1] must be an object'],
    ['an entry that is an array', { users: [[user]] }, 'users[0] must be an object'],
    ['a wrong userId', { users: [user, { userId: 7 }] }, 'users[1].userId must be a string'],
    ['a missing userId', { users: [{}] }, 'users[0].userId is required and must be a string'],
    ['a name that is no string', { users: [{ userId: 'u', name: {} }] }, 'users[0].name must be a string'],
  ])('refuses %s of users and names the path', (_, differences, problem) =>
    expectProblem(AddUsersRequest, { ...users, ...differences }, `data.${problem}`),
  );

  const data = 'displayHeadlineMessageTemplateData';
  it.each<[string, object, string]>([
    ['a missing actionUser', { actionUser: undefined }, 'actionUser is required and must be an object'],
    ['an actionUser that is a string', { actionUser: 'u' }, 'actionUser must be an object'],
    ['an actionUser without userId', { actionUser: {} }, 'actionUser.userId is required and must be a string'],
    ['an empty template', { displayHeadlineMessageTemplate: '' }, 'displayHeadlineMessageTemplate must not be empty'],
    ['a long body message', { displayBodyMessage: '😀'.repeat(10_001) }, 'displayBodyMessage must be at most 10000 characters'],
    ['template data that is an array', { [data]: [] }, `${data} must be an object`],
    ['a custom value that is a number', { [data]: { place: 5 } }, `${data}.place must be a string`],
    ['a custom value with a name that is no word', { [data]: { 'my place': 5 } }, `${data} has a value that must be a string`],
    ['a template actionUser that is a string', { [data]: { actionUser: 'u' } }, `${data}.actionUser must be an object`],
    [
      'a template recipientUser without userId',
      { [data]: { recipientUser: {} } },
      `${data}.recipientUser.userId is required and must be a string`,
    ],
    [
      'too much source data',
      { notificationSourceData: { x: 'é'.repeat(33_000) } },
      'notificationSourceData must be at most 65536 bytes of UTF-8 as JSON',
    ],
    ['a flag that is a string', { notifyAll: 'true' }, 'notifyAll must be a boolean'],
    ['notifyUsers of strings', { notifyUsers: ['u'] }, 'notifyUsers[0] must be an object'],
  ])('refuses %s of a notification and names the path', (_, differences, problem) =>
    expectProblem(AddNotificationRequest, { ...notification, ...differences }, `data.${problem}`),
  );

  it.each<[string, object, string]>([
    ['a blank id in a list', { notificationIds: ['a', ' '] }, 'notificationIds[1] must not be blank'],
    ['a page size of 0', { pageSize: 0 }, 'pageSize must be a whole number from 1 to 1000'],
    ['a broken page token', { pageToken: 'abc' }, 'pageToken must be a token that an earlier page of this operation returned'],
    ['an unknown order', { order: 'up' }, 'order must be one of: asc, desc'],
  ])('refuses %s of filters and names the path', (_, differences, problem) =>
    expectProblem(GetNotificationsRequest, { organizationId: 'o', userId: 'u', ...differences }, `data.${problem}`),
  );

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
