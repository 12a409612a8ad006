import { parseBrokerUrl } from '@app/runtime/settings/broker-url';
import { setMissingLimits } from './limits';
import { RIGHTS, topicRights, type Account, type Rights } from './rights';
import type { ManagementApi } from '../management-api';

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
