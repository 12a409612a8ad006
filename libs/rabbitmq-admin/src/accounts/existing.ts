import type { AccountPurpose } from './rights';
import type { ManagementApi } from '../management-api';
import { LANE_NUMBERS, LANES, type Lane } from '@app/rabbitmq/topology/topology';
import { taggedAccounts } from './tagged-accounts';

/** Lanes that the tool assigns by default. The others are for old accounts and for explicit choice. */
const SHARED_LANES: readonly Lane[] = [1, 2];

/** Permissions of an account in the broker, and the lane that follows from them. */
export interface Permissions {
  configure: string;
  write: string;
  read: string;
  lane?: Lane;
}

/** Permissions by account. */
export async function allPermissions(api: ManagementApi): Promise<Map<string, Permissions>> {
  const all = await api.list<Permissions & { user: string }>(`vhosts/${api.vhost}/permissions`);
  return new Map(
    all.map(({ user, configure, write, read }) => {
      const written = namesIn(write);
      const lane = LANE_NUMBERS.find((one) => written.includes(LANES[one]));
      return [user, { configure, write, read, lane }];
    }),
  );
}

/** Whether an account may declare queues under its name, as accounts made before 0.2 may until they are changed. */
export const mayDeclare = (name: string, { configure }: Permissions): boolean => configure.includes(`${name}\\.`);

/** The shared lane to which the fewest accounts of the tool publish. */
export async function quietestLane(api: ManagementApi): Promise<Lane> {
  const permissions = await allPermissions(api);
  const lanes = (await taggedAccounts(api)).map((name) => permissions.get(name)?.lane);
  const accountsIn = (lane: Lane) => lanes.filter((one) => one === lane).length;
  return SHARED_LANES.reduce((best, lane) => (accountsIn(lane) < accountsIn(best) ? lane : best));
}

interface TopicPermission {
  exchange: string;
  write: string;
  read: string;
}

/** The purpose of an account, derived from its rights. */
export async function purposeOf(api: ManagementApi, name: string, permissions?: Permissions): Promise<AccountPurpose> {
  const topics = (await api.get<TopicPermission[]>(`users/${name}/topic-permissions`)) ?? [];
  const ofExchange = (exchange: string) => topics.find((one) => one.exchange === exchange);
  const operations = namesIn(ofExchange('commands')?.write);
  return {
    operations,
    lane: operations.length > 0 ? permissions?.lane : undefined,
    replies: namesIn(permissions?.read).includes('replies'),
    events: namesIn(ofExchange('events')?.read),
  };
}

/** Names in a permission pattern that this tool has written. */
const namesIn = (pattern = '^$') =>
  pattern
    .replace(/^\^\(?|\)?\$$/g, '')
    .split('|')
    .map((name) => name.replaceAll('\\', ''))
    .filter(Boolean);
