import { checkHandlers } from './handler-check';

const ALL = ['users.add.v1', 'users.authenticate.v1', 'users.authorize.v1', 'users.exists.v1'];

describe('checkHandlers', () => {
  it('passes one handler for each message of the service', () => {
    expect(() => checkHandlers('users', ALL)).not.toThrow();
  });

  it('names all that is wrong', () => {
    expect(() =>
      checkHandlers('users', ['users.add.v1', 'users.add.v1', 'notifications.add.v1', 'users.authorize.v1', 'users.exists.v1']),
    ).toThrow(
      'The handlers of the service users are wrong: users.authenticate.v1 has no handler; ' +
        'notifications.add.v1 is not a message of users; users.add.v1 has more than one handler.',
    );
  });
});
