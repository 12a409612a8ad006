import { ownAccounts } from './declare-accounts';

const config = (urls: Partial<Record<'gateway' | 'users' | 'notifications' | 'publisher', string>>) => ({
  amqpUrl: 'amqp://admin:secret@broker',
  gateway: undefined,
  users: undefined,
  notifications: undefined,
  publisher: undefined,
  ...urls,
});

describe('the accounts of the services', () => {
  it('are those of URLs that do not have the full-rights account', () => {
    const users = 'amqp://users:a@broker';
    expect(ownAccounts(config({ gateway: 'amqp://admin:secret@broker', users }))).toEqual({ users });
  });

  it.each([
    [
      'NOTIFICATIONS_AMQP_URL has the account of USERS_AMQP_URL, and each needs one of its own',
      { users: 'amqp://services:a@broker', notifications: 'amqp://services:a@broker' },
    ],
    ['GATEWAY_AMQP_URL must have a password, and another one than guest', { gateway: 'amqp://gateway@broker' }],
    ['PUBLISHER_AMQP_URL must have a password, and another one than guest', { publisher: 'amqp://broker' }],
  ])('are refused with: %s', (problem, urls) => {
    expect(() => ownAccounts(config(urls))).toThrow(problem);
  });
});
