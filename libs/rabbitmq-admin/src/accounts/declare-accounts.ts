import type { AccountsConfig } from '@app/rabbitmq/config';
import { parseBrokerUrl } from '@app/runtime/settings/broker-url';
import { ConfigError } from '@app/runtime/settings/settings';
import { setMissingLimits } from './limits';
import { RIGHTS, topicRights, type Account, type Rights } from './rights';
import type { ManagementApi } from '../management-api';

type Services = Pick<AccountsConfig, 'amqpUrl' | Account>;

/**
 * Accounts that differ from the full-rights account.
 *
 * @throws ConfigError when two of them are one, which would have the rights of the last, or when everybody knows the password of one
 */
export function ownAccounts({ amqpUrl, gateway, users, notifications, publisher }: Services): Partial<Record<Account, string>> {
  const nameIn = (url: string) => parseBrokerUrl(url).username;
  const urls = Object.entries({ gateway, users, notifications, publisher }).flatMap(([account, url]) =>
    url !== undefined && nameIn(url) !== nameIn(amqpUrl) ? [[account, url] as const] : [],
  );
  const problems = urls.flatMap(([account, url], index) => {
    const variable = `${account.toUpperCase()}_AMQP_URL`;
    const [earlier] = urls.slice(0, index).find(([, other]) => nameIn(other) === nameIn(url)) ?? [];
    return [
      ...(earlier ? [`${variable} has the account of ${earlier.toUpperCase()}_AMQP_URL, and each needs one of its own`] : []),
      ...(parseBrokerUrl(url).password === 'guest' ? [`${variable} must have a password, and another one than guest`] : []),
    ];
  });
  if (problems.length > 0) throw new ConfigError(problems);
  return Object.fromEntries(urls);
}

/**
 * Creates the accounts, or updates password and rights of existing ones.
 *
 * @param accounts URL with which each account will connect. The account gets its user name and password
 * @returns the names of the accounts
 * @throws Error with the status of the management API, never with a password
 */
export async function declareAccounts(api: ManagementApi, accounts: Partial<Record<Account, string>>): Promise<string[]> {
  const declared: string[] = [];
  for (const [account, url] of Object.entries(accounts) as [Account, string][]) {
    const { username, password } = parseBrokerUrl(url);
    await api.put(`users/${encodeURIComponent(username)}`, { password, tags: '' });
    await setRights(api, username, RIGHTS[account]);
    // Accounts of the services have no limits, because they open few connections.
    if (account === 'publisher') await setMissingLimits(api, username);
    declared.push(username);
  }
  return declared;
}

/** Replaces the rights of an account. */
export async function setRights(api: ManagementApi, username: string, rights: Rights): Promise<void> {
  const user = encodeURIComponent(username);
  // Set before the permissions, because an account without topic permissions may use every routing key.
  for (const topic of topicRights(rights)) await api.put(`topic-permissions/${api.vhost}/${user}`, topic);
  const { configure, write, read } = rights;
  await api.put(`permissions/${api.vhost}/${user}`, { configure, write, read });
}
