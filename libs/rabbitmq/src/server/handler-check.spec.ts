import { checkHandlers } from './handler-check';

const ALL = [
  'users.add.v1',
  'users.delete.v1',
  'users.erase.v1',
  'users.get.v1',
  'documents.set.v1',
  'users.authenticate.v1',
  'users.authorize.v1',
  'users.exists.v1',
  'access.check.v1',
  'contacts.list.v1',
  'memberships.list.v1',
];

describe('checkHandlers', () => {
  it('passes one handler for each message of the service', () => {
    expect(() => checkHandlers('users', ALL)).not.toThrow();
  });

  it('names every problem', () => {
    const wrong = ALL.filter((pattern) => pattern !== 'users.authenticate.v1').concat('users.add.v1', 'notifications.add.v1');
    expect(() => checkHandlers('users', wrong)).toThrow(
      'The handlers of the service users are wrong: users.authenticate.v1 has no handler; ' +
        'notifications.add.v1 is not a message of users; users.add.v1 has more than one handler.',
    );
  });
});
