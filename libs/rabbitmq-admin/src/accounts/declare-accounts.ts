import { parseBrokerUrl } from '@app/amqp/open-connection';
import { setMissingLimits } from './limits';
import { RIGHTS, type Account, type Rights } from './rights';
import { ManagementApi } from '../management-api';
import { LANES } from '@app/rabbitmq/topology/topology';

export interface AccountsOptions {
  /** Of the management API: `http://host:15672`. User and password, if not in it, are those of the broker's URL. */
  managementUrl: string;
  /** Of the full-rights account, with the virtual host. */
  amqpUrl: string;
  /** With which URL each account will connect: its user name and password are what it gets. */
  accounts: Partial<Record<Account, string>>;
  /** How long to wait for a broker that is not up yet, in milliseconds. Default 0. */
  waitMs?: number;
}

/**
 * Creates the accounts, or gives those that exist the password and the rights of now.
 *
 * @returns the names of the accounts
 * @throws Error that says what the management API answered; never with a password in it
 */
export async function declareAccounts({ managementUrl, amqpUrl, accounts, waitMs = 0 }: AccountsOptions): Promise<string[]> {
  const api = new ManagementApi(managementUrl, amqpUrl, performance.now() + waitMs);
  const declared: string[] = [];
  for (const [account, url] of Object.entries(accounts) as [Account, string][]) {
    const { username, password } = parseBrokerUrl(url);
    await api.put(`users/${encodeURIComponent(username)}`, { password, tags: '' });
    await setRights(api, username, RIGHTS[account]);
    // Those of the services have none: they open few.
    if (account === 'publisher') await setMissingLimits(api, username);
    declared.push(username);
  }
  return declared;
}

/** Gives an account these rights and no others. */
export async function setRights(
  api: ManagementApi,
  username: string,
  { commands, events, ...permissions }: Rights,
): Promise<void> {
  const user = encodeURIComponent(username);
  // Before the permissions: an account without topic permissions may use every routing key.
  const topics = [
    ...(['calls', ...LANES] as const).map((exchange) => ({ exchange, write: commands, read: '^$' })),
    // `write` holds for permissions that name the exchange, as those of services do.
    ...(['events.own', 'events'] as const).map((exchange) => ({ exchange, write: '.*', read: events })),
  ];
  for (const topic of topics) await api.put(`topic-permissions/${api.vhost}/${user}`, topic);
  await api.put(`permissions/${api.vhost}/${user}`, permissions);
}
