import { LANE_NUMBERS, queryQueue, SERVICES } from '@app/rabbitmq/topology/topology';
import { Refused, type ManagementApi } from '../management-api';
import { LISTENER_LIMITS } from './listener-queues';
import { taggedAccounts } from './tagged-accounts';

/** Most connections and channels that one account may have open. */
export interface AccountLimits {
  connections: number;
  channels: number;
}

export const DEFAULT_LIMITS: AccountLimits = { connections: 50, channels: 500 };

/** Limits of a reply queue whose caller does not read: 16 of the largest pages. The broker keeps replies in memory. */
const REPLY_LIMITS = { 'max-length': 20_000, 'max-length-bytes': 64 * 1024 * 1024 };
const REPLIES = 'collaboration.replies';

/** A query of another service is not executed after this time, in milliseconds: its caller has gone, or has asked again. */
export const QUERY_LIMITS = { 'message-ttl': 30_000 };
export const QUERIES = 'collaboration.queries';
const QUERY_QUEUES = SERVICES.flatMap((service) => LANE_NUMBERS.map((lane) => queryQueue(service, lane)));

interface UserLimits {
  value: { 'max-connections'?: number; 'max-channels'?: number };
}

/** Limits of an account. @returns undefined fields where there is no limit */
export async function limitsOf(api: ManagementApi, name: string): Promise<Partial<AccountLimits>> {
  const [found] = (await api.get<UserLimits[]>(`user-limits/${encodeURIComponent(name)}`)) ?? [];
  return { connections: found?.value['max-connections'], channels: found?.value['max-channels'] };
}

/** Sets the limits of an account. Open connections above a new limit stay open. */
export async function setLimits(api: ManagementApi, name: string, { connections, channels }: AccountLimits): Promise<void> {
  const user = encodeURIComponent(name);
  await api.put(`user-limits/${user}/max-connections`, { value: connections });
  await api.put(`user-limits/${user}/max-channels`, { value: channels });
}

/** Sets only the missing limits of an account: limits that an operator has set stay. */
export async function setMissingLimits(api: ManagementApi, name: string): Promise<void> {
  const { connections, channels } = await limitsOf(api, name);
  await setLimits(api, name, {
    connections: connections ?? DEFAULT_LIMITS.connections,
    channels: channels ?? DEFAULT_LIMITS.channels,
  });
}

const policyOf = (name: string) => `collaboration.listener.${name}`;

/**
 * Limits every queue of a listener, also one that the listener has declared without limits. A full queue then drops its oldest events: an operator
 * policy cannot set the overflow behaviour, and drop-head is the default.
 */
export function boundQueues(api: ManagementApi, name: string): Promise<void> {
  const pattern = `^${name.replaceAll('.', '\\.')}\\.`;
  const [length, bytes] = [LISTENER_LIMITS['x-max-length'], LISTENER_LIMITS['x-max-length-bytes']];
  return setPolicy(api, policyOf(name), pattern, { 'max-length': length, 'max-length-bytes': bytes });
}

/** Whether the queues of an account have limits by this tool. They have them as long as there is an account or one of its queues. */
export const isBounded = async (api: ManagementApi, name: string): Promise<boolean> =>
  (await api.get(`operator-policies/${api.vhost}/${encodeURIComponent(policyOf(name))}`)) !== undefined;

export function unboundQueues(api: ManagementApi, name: string): Promise<void> {
  return api.delete(`operator-policies/${api.vhost}/${encodeURIComponent(policyOf(name))}`);
}

/**
 * Limits the reply queues of all accounts, and the age of queries in the lanes. Limits the queues, connections and channels of each account
 * of another service, however old the account is.
 *
 * @returns number of accounts of other services
 */
export async function boundEverybody(api: ManagementApi): Promise<number> {
  await setPolicy(api, REPLIES, '^amq\\.gen-', REPLY_LIMITS);
  await setPolicy(api, QUERIES, `^(${QUERY_QUEUES.join('|').replaceAll('.', '\\.')})$`, QUERY_LIMITS);
  const names = await taggedAccounts(api);
  for (const name of names) {
    try {
      await setMissingLimits(api, name);
      await boundQueues(api, name);
    } catch (error) {
      // Somebody may have deleted it meanwhile.
      if ((await taggedAccounts(api)).includes(name)) throw error;
    }
  }
  return names.length;
}

/**
 * The policies that {@link boundEverybody} sets, and that are not there any more.
 *
 * @param accounts the names of those of other services
 */
export async function missingPolicies(api: ManagementApi, accounts: readonly string[]): Promise<string[]> {
  const there = new Set((await api.list<{ name: string }>(`operator-policies/${api.vhost}`)).map(({ name }) => name));
  return [REPLIES, QUERIES, ...accounts.map(policyOf)].filter((name) => !there.has(name));
}

const METHOD_NOT_ALLOWED = 405;

async function setPolicy(api: ManagementApi, name: string, pattern: string, definition: Record<string, number>): Promise<void> {
  // If several operator policies match a queue, the broker applies only the one with the highest priority.
  const policy = { pattern, definition, 'apply-to': 'queues', priority: 1 };
  try {
    await api.put(`operator-policies/${api.vhost}/${encodeURIComponent(name)}`, policy);
  } catch (error) {
    if (!(error instanceof Refused) || error.status !== METHOD_NOT_ALLOWED) throw error;
    // The default of Amazon MQ.
    throw new Error(
      `${error.message}: the broker takes operator policies with management.restrictions.operator_policy_changes.disabled = false only`,
      { cause: error },
    );
  }
}
