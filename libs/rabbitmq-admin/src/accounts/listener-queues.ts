import type { ManagementApi } from '../management-api';
import { lastingQueues } from '../queue-pages';

const EVENTS = 'events';
/** Default suffix of a queue name, after its account's name and a dot. */
const DEFAULT_SUFFIX = 'events';

/** A full listener queue dead-letters its oldest events; a full dead-letter queue drops its oldest. Neither refuses, so no publisher waits. */
export const LISTENER_LIMITS = {
  'x-queue-type': 'quorum',
  'x-max-length': 100_000,
  'x-max-length-bytes': 256 * 1024 * 1024,
  'x-overflow': 'drop-head',
} as const;
const DELIVERY_LIMIT = 20;
/** Explicit, because RabbitMQ 4 has a limit of 20 by default: a dead letter that was looked at more often would be lost. */
const NEVER = 1_000_000;

export interface ListenerQueue {
  name: string;
  arguments: Readonly<Record<string, unknown>>;
}

export const queueName = (account: string, suffix = DEFAULT_SUFFIX) => `${account}.${suffix}`;
const deadName = (queue: string) => `${queue}.dead`;

/** The event queues of an account, without their dead-letter queues. */
export async function listenerQueues(api: ManagementApi, account: string): Promise<ListenerQueue[]> {
  return (await ownQueues(api, account)).filter(({ name }) => !name.endsWith('.dead'));
}

/** Every queue that is named after the account. The broker looks for them: there may be any number of others. */
export const ownQueues = (api: ManagementApi, account: string): Promise<ListenerQueue[]> =>
  lastingQueues<ListenerQueue>(api, `^${account}\\.`);

/** Declares a missing queue with its dead-letter queue. One that is there stays: an earlier version may have declared it with other arguments. */
export async function declareListenerQueue(api: ManagementApi, queue: string): Promise<void> {
  const dead = encodeURIComponent(deadName(queue));
  await api.put(`exchanges/${api.vhost}/${dead}`, { type: 'fanout', durable: true });
  if (!(await api.get(`queues/${api.vhost}/${dead}`)))
    await api.put(`queues/${api.vhost}/${dead}`, { durable: true, arguments: { ...LISTENER_LIMITS, 'x-delivery-limit': NEVER } });
  await api.post(`bindings/${api.vhost}/e/${dead}/q/${dead}`, { routing_key: '' });
  await api.put(`queues/${api.vhost}/${encodeURIComponent(queue)}`, {
    durable: true,
    arguments: { ...LISTENER_LIMITS, 'x-delivery-limit': DELIVERY_LIMIT, 'x-dead-letter-exchange': deadName(queue) },
  });
}

interface Binding {
  routing_key: string;
  properties_key: string;
}

/** Binds a queue to these event types, and removes all other bindings. */
export async function bindListenerQueue(api: ManagementApi, queue: string, types: readonly string[]): Promise<void> {
  const path = `bindings/${api.vhost}/e/${EVENTS}/q/${encodeURIComponent(queue)}`;
  const found = (await api.get<Binding[]>(path)) ?? [];
  const missing = types.filter((type) => !found.some(({ routing_key: key }) => key === type));
  for (const type of missing) await api.post(path, { routing_key: type });
  const surplus = found.filter(({ routing_key: key }) => !types.includes(key));
  for (const { properties_key: key } of surplus) await api.delete(`${path}/${encodeURIComponent(key)}`);
}

/** Whether a full queue rejects: then it loses its newest events, after they were retried for a while. */
export const isRefusing = ({ arguments: args }: ListenerQueue) => String(args['x-overflow']).startsWith('reject');
