import { AccountsConfig } from './config';

const made = (urls: Record<string, string>) =>
  new AccountsConfig({ AMQP_URL: 'amqp://admin:secret@broker', RABBITMQ_MANAGEMENT_URL: 'http://broker:15672', ...urls }).made;

describe('the accounts of the services that set-up makes', () => {
  it('are those of URLs that do not have the full-rights account', () => {
    const users = 'amqp://users:a@broker';
    expect(made({ GATEWAY_AMQP_URL: 'amqp://admin:secret@broker', USERS_AMQP_URL: users })).toEqual({ users });
    expect(made({ AMQP_URL: 'amqp://admin:secret@broker/%2F', USERS_AMQP_URL: users })).toEqual({ users });
  });

  it.each([
    [
      'NOTIFICATIONS_AMQP_URL has the account of USERS_AMQP_URL, and each needs one of its own',
      { USERS_AMQP_URL: 'amqp://services:a@broker', NOTIFICATIONS_AMQP_URL: 'amqp://services:a@broker' },
    ],
    ['GATEWAY_AMQP_URL must have a password, and another one than guest', { GATEWAY_AMQP_URL: 'amqp://gateway@broker' }],
    ['PUBLISHER_AMQP_URL must have a password, and another one than guest', { PUBLISHER_AMQP_URL: 'amqp://broker' }],
    ['USERS_AMQP_URL must have the virtual host of AMQP_URL', { USERS_AMQP_URL: 'amqp://users:a@broker/other' }],
  ])(
    'are refused with: %s; without the management API none is made, and they are not',
    (problem, urls: Record<string, string>) => {
      expect(() => made(urls)).toThrow(problem);
      expect(made({ ...urls, RABBITMQ_MANAGEMENT_URL: '' })).toEqual({});
    },
  );
});
