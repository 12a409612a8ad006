import type { ManagementApi } from '../management-api';
import { LISTENER_LIMITS } from './listener-queues';
import { taggedAccounts } from './tagged-accounts';

/** What the broker lets one account open at a time. */
export interface AccountLimits {
  connections: number;
  channels: number;
}

export const DEFAULT_LIMITS: AccountLimits = { connections: 50, channels: 500 };

/** Most replies that wait for a caller who does not read. */
const REPLY_LIMITS = { 'max-length': 20_000, 'max-length-bytes': 256 * 1024 * 1024 };
const REPLIES = 'collaboration.replies';

interface UserLimits {
  value: { 'max-connections'?: number; 'max-channels'?: number };
}

/** @returns undefined where the broker sets no limit */
export async function limitsOf(api: ManagementApi, name: string): Promise<Partial<AccountLimits>> {
  const [found] = (await api.get<UserLimits[]>(`user-limits/${encodeURIComponent(name)}`)) ?? [];
  return { connections: found?.value['max-connections'], channels: found?.value['max-channels'] };
}

/** Connections that are open already stay. */
export async function setLimits(api: ManagementApi, name: string, { connections, channels }: AccountLimits): Promise<void> {
  const user = encodeURIComponent(name);
  await api.put(`user-limits/${user}/max-connections`, { value: connections });
  await api.put(`user-limits/${user}/max-channels`, { value: channels });
}

/** The same for an account that may have limits of its own already: an operator's stay. */
export async function setMissingLimits(api: ManagementApi, name: string): Promise<void> {
  const { connections, channels } = await limitsOf(api, name);
  await setLimits(api, name, {
    connections: connections ?? DEFAULT_LIMITS.connections,
    channels: channels ?? DEFAULT_LIMITS.channels,
  });
}

const policyOf = (name: string) => `collaboration.listener.${name}`;

/**
 * Bounds every queue of a listener, one that it has declared itself without a bound included. Full, that one drops its oldest: such a policy
 * cannot say what happens then, and this is what a queue does by itself.
 */
export function boundQueues(api: ManagementApi, name: string): Promise<void> {
  const pattern = `^${name.replaceAll('.', '\\.')}\\.`;
  const [length, bytes] = [LISTENER_LIMITS['x-max-length'], LISTENER_LIMITS['x-max-length-bytes']];
  return setPolicy(api, policyOf(name), pattern, { 'max-length': length, 'max-length-bytes': bytes });
}

export function unboundQueues(api: ManagementApi, name: string): Promise<void> {
  return api.delete(`operator-policies/${api.vhost}/${encodeURIComponent(policyOf(name))}`);
}

/**
 * Bounds the reply queues of all accounts, and all that the accounts of other services may use: those made before there were limits as well.
 *
 * @returns how many accounts there are
 */
export async function boundEverybody(api: ManagementApi): Promise<number> {
  await setPolicy(api, REPLIES, '^amq\\.gen-', REPLY_LIMITS);
  const names = await taggedAccounts(api);
  for (const name of names) {
    await setMissingLimits(api, name);
    await boundQueues(api, name);
  }
  return names.length;
}

// Of the operator policies that match a queue the broker takes the one of the highest priority alone.
function setPolicy(api: ManagementApi, name: string, pattern: string, definition: Record<string, number>): Promise<void> {
  const policy = { pattern, definition, 'apply-to': 'queues', priority: 1 };
  return api.put(`operator-policies/${api.vhost}/${encodeURIComponent(name)}`, policy);
}
