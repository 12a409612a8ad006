import { allPermissions, type Permissions } from '@app/rabbitmq-admin/accounts/existing';
import { RIGHTS, topicRights, type Account, type TopicRights } from '@app/rabbitmq-admin/accounts/rights';
import { taggedAccounts } from '@app/rabbitmq-admin/accounts/tagged-accounts';
import type { ManagementApi } from '@app/rabbitmq-admin/management-api';
import { lastingQueues } from '@app/rabbitmq-admin/queue-pages';
import { LANES, QUEUES, SERVICES, letterQueues } from '@app/rabbitmq/topology/topology';
import { counted } from '@app/runtime/counted';
import { parseBrokerUrl } from '@app/runtime/settings/broker-url';
import type { Findings } from '../finding';
import { lookAtExchanges, lookAtLane, lookAtListeners } from './bindings';
import { lookAtConnections } from './connections';
import { lookAtPolicies, type GovernedQueue } from './policies';

interface Queue extends GovernedQueue {
  arguments: Record<string, unknown>;
  messages?: number;
  message_bytes?: number;
  consumers?: number;
  leader?: string;
  members?: string[];
  online?: string[];
  state?: string;
}

interface Node {
  name: string;
  running: boolean;
  mem_alarm?: boolean;
  disk_free_alarm?: boolean;
  fd_used?: number;
  fd_total?: number;
}

/** Replicas of a quorum queue in a cluster that is large enough. */
const REPLICAS = 3;
const LETTERS = new Set(SERVICES.flatMap(letterQueues));
const OWN = new Set(QUEUES.map(({ name }) => name));
/** Only processes of this system consume, and only these kinds of queues. */
const NOT_CONSUMED = /\.(retry\.\w+|commands\.(dead|crashed|refused))$/;
/** A share of a limit that is worth a line. */
const MUCH = 0.5;

/** Looks at nodes, queues and rights by the management API. */
export async function lookByManagement(
  findings: Findings,
  api: ManagementApi,
  accounts: Partial<Record<Account, string>>,
): Promise<void> {
  /** A question that the API does not answer is one finding, and no reason to leave out the others. */
  const ask = (subject: string, look: () => Promise<void>) =>
    look().catch((error: unknown) =>
      findings.problem(
        subject,
        (error as Error).message,
        'look at the node, at RABBITMQ_MANAGEMENT_URL, and at the login in AMQP_URL, which needs the tag "administrator"',
      ),
    );
  let nodes: Node[] = [];
  await ask('management API', async () => {
    nodes = await api.list<Node>('nodes');
    lookAtNodes(findings, nodes);
  });
  if (nodes.length === 0) return;
  await ask('feature flags', () => lookAtFlags(findings, api));
  await ask('queues', async () => {
    const queues = await lastingQueues<Queue>(api);
    lookAtQueues(findings, new Map(queues.map((queue) => [queue.name, queue])));
    lookAtOtherQueues(findings, queues);
    lookAtReplicas(findings, queues, nodes);
    await ask('policies', async () =>
      lookAtPolicies(findings, api, { queues, accounts: [...(await accountsOfOthers(api)).keys()] }),
    );
    await ask('exchanges', () => lookAtExchanges(findings, api, new Set(queues.map(({ name }) => name))));
  });
  await ask('connections', () => lookAtConnections(findings, api));
  await ask('listeners', async () => lookAtListeners(findings, api, await accountsOfOthers(api)));
  for (const lane of LANES) await ask(`exchange ${lane}`, () => lookAtLane(findings, api, lane));
  for (const [account, url] of Object.entries(accounts) as [Account, string | undefined][])
    if (url) await ask(`rights of ${account}`, () => lookAtRights(findings, api, account, parseBrokerUrl(url).username));
}

/** Only accounts with rights on this virtual host: a broker may have others, too. */
async function accountsOfOthers(api: ManagementApi): Promise<Map<string, Permissions>> {
  const names = await taggedAccounts(api);
  return new Map([...(await allPermissions(api))].filter(([name]) => names.includes(name)));
}

function lookAtNodes(findings: Findings, nodes: readonly Node[]): void {
  const before = findings.all.length;
  for (const { name, running, mem_alarm: memory, disk_free_alarm: disk, fd_used: used = 0, fd_total: total = 0 } of nodes) {
    if (!running)
      findings.problem(`node ${name}`, 'does not run', 'start it, or remove it with "rabbitmqctl forget_cluster_node"');
    if (memory || disk)
      findings.problem(
        `node ${name}`,
        `is short of ${memory ? 'memory' : 'disk'}, and takes no messages`,
        'see docs/runbooks/BrokerBlocked.md',
      );
    if (used > total * 0.8)
      findings.warning(`node ${name}`, `uses ${used} of ${total} open files`, 'raise its limit of open files');
  }
  // Absent where the broker collects no figures, as a later version of RabbitMQ 4 will not by itself.
  const known = nodes.every(({ running, mem_alarm: memory }) => !running || memory !== undefined);
  if (!known)
    findings.skipped(
      'alarms of nodes and consumers of queues',
      'the management API has no figures of them (docs/servers.md, "Figures")',
    );
  if (findings.all.every(({ state }, at) => at < before || state === 'skipped'))
    findings.ok('nodes', `${nodes.length} of ${nodes.length} run${known ? ', without an alarm' : ''}`);
}

/** RabbitMQ switches none on by itself after an upgrade, and the next one requires them. */
async function lookAtFlags(findings: Findings, api: ManagementApi): Promise<void> {
  const flags = await api.list<{ name: string; state: string; stability: string }>('feature-flags');
  const off = flags.filter(({ state, stability }) => state === 'disabled' && stability === 'stable').map(({ name }) => name);
  if (off.length > 0)
    findings.warning(
      'feature flags',
      `off are ${off.join(', ')}: a later version of RabbitMQ does not start then`,
      'run "rabbitmqctl enable_feature_flag all"',
    );
  else findings.ok('feature flags', 'all stable ones are on');
}

function lookAtQueues(findings: Findings, found: ReadonlyMap<string, Queue>): void {
  const before = findings.all.length;
  for (const { name, arguments: wanted } of QUEUES) {
    const queue = found.get(name);
    const subject = `queue ${name}`;
    if (!queue) {
      findings.problem(subject, 'does not exist', 'run "npm run setup"');
      continue;
    }
    const wrong = Object.entries(wanted).filter(([key, value]) => queue.arguments[key] !== value);
    if (wrong.length > 0)
      findings.problem(
        subject,
        `has another ${wrong.map(([key]) => key).join(', ')}`,
        'empty it, delete it, and run "npm run setup"',
      );
    const { messages = 0, consumers } = queue;
    const fills = filling(queue);
    if (LETTERS.has(name) && messages > 0)
      findings.warning(subject, `has ${counted(messages, 'letter')}`, 'look at them with "npm run dead-letters -- list"');
    else if (fills) findings.problem(subject, fills, 'see docs/runbooks/QueueFilling.md');
    if (consumers === 0 && messages > 0 && !NOT_CONSUMED.test(name))
      findings.problem(subject, `has ${counted(messages, 'message')} and no consumer`, 'see docs/runbooks/QueueNotConsumed.md');
  }
  if (findings.all.length === before)
    findings.ok('queues', `all ${QUEUES.length} exist with their arguments, none is half full, and no letter waits`);
}

/** Those of other services: no metric has them, and most drop their oldest message when they are full. */
function lookAtOtherQueues(findings: Findings, queues: readonly Queue[]): void {
  const full = queues.filter((queue) => !OWN.has(queue.name) && filling(queue));
  const [first] = full.toSorted((a, b) => (a.name < b.name ? -1 : 1));
  if (first)
    findings.warning(
      'queues of other services',
      `${first.name} ${filling(first)}, and a full queue loses or refuses messages; more than half full: ${counted(full.length, 'queue')}`,
      'tell the owner of the account in front of its name; see docs/runbooks/EventsLost.md',
    );
}

/** @returns what a queue that is more than half full has, in messages or in bytes */
function filling({
  arguments: own,
  effective_policy_definition: policy,
  messages = 0,
  message_bytes: bytes = 0,
}: Queue): string | undefined {
  const most = (name: string) =>
    Math.min(...[own[`x-${name}`], policy?.[name]].filter((one) => typeof one === 'number' && one >= 0).map(Number));
  if (messages > most('max-length') * MUCH) return `has ${messages} messages of at most ${most('max-length')}`;
  if (bytes > most('max-length-bytes') * MUCH) return `has ${bytes} bytes of at most ${most('max-length-bytes')}`;
  return undefined;
}

function lookAtReplicas(findings: Findings, queues: readonly Queue[], all: readonly Node[]): void {
  const quorum = queues.filter(({ arguments: { 'x-queue-type': type } }) => type === 'quorum');
  const offline = quorum.filter(({ members = [], online = [] }) => online.length < members.length);
  if (offline.length > 0)
    findings.problem(
      'replicas',
      `${counted(offline.length, 'queue has', 'queues have')} a replica that is away, ${offline[0]?.name} for one`,
      'start the node that is away',
    );
  if (all.length === 1)
    return findings.warning(
      'replicas',
      'the broker is a single node: without it every call fails',
      'use a cluster of three nodes',
    );
  const nodes = all.filter(({ running }) => running).length;
  const few = quorum.filter(({ members = [] }) => members.length < Math.min(REPLICAS, nodes));
  if (few.length > 0)
    findings.warning(
      'replicas',
      `${counted(few.length, 'queue has', 'queues have')} fewer than ${Math.min(REPLICAS, nodes)}`,
      'run "rabbitmq-queues grow NODE all" at the new nodes',
    );
  const leaders = new Set(quorum.map(({ leader }) => leader));
  if (leaders.size < nodes)
    findings.warning('leaders', `are all at ${leaders.size} of ${nodes} nodes`, 'run "rabbitmq-queues rebalance quorum"');
  else if (offline.length + few.length === 0)
    findings.ok('replicas', `${quorum.length} quorum queues, leaders at all ${nodes} nodes`);
}

async function lookAtRights(findings: Findings, api: ManagementApi, account: Account, username: string): Promise<void> {
  const user = `${api.vhost}/${encodeURIComponent(username)}`;
  const granted = await api.get<Record<string, string>>(`permissions/${user}`);
  const topics = (await api.get<TopicRights[]>(`topic-permissions/${user}`)) ?? [];
  const { configure, write, read } = RIGHTS[account];
  const wrong = [
    ...Object.entries({ configure, write, read }).flatMap(([right, pattern]) => (granted?.[right] === pattern ? [] : [right])),
    // Without a topic permission every routing key of the exchange is allowed.
    ...topicRights(RIGHTS[account]).flatMap((wanted) => {
      const found = topics.find(({ exchange }) => exchange === wanted.exchange);
      return found?.write === wanted.write && found.read === wanted.read ? [] : [`routing keys of ${wanted.exchange}`];
    }),
  ];
  if (wrong.length === 0) findings.ok(`rights of ${account}`, 'are those that set-up gives');
  else findings.problem(`rights of ${account}`, `${wrong.join(', ')} differ from those that set-up gives`, 'run "npm run setup"');
}
