import { ALL_MESSAGES } from '@app/contracts/all-messages';
import { checkHandlers } from './handler-check';

const ALL = ALL_MESSAGES.filter(({ service }) => service === 'users').map(({ pattern }) => pattern);

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
