import { missingPolicies, QUERIES, QUERY_LIMITS } from '@app/rabbitmq-admin/accounts/limits';
import type { ManagementApi } from '@app/rabbitmq-admin/management-api';
import { QUEUES } from '@app/rabbitmq/topology/topology';
import { counted } from '@app/runtime/counted';
import type { Findings } from '../finding';

/** A queue with the policies that apply to it. */
export interface GovernedQueue {
  name: string;
  policy?: string | null;
  operator_policy?: string | null;
  effective_policy_definition?: Record<string, unknown> | null;
}

/** Settings by which a queue loses messages, or takes fewer. */
const HARMFUL = [
  'message-ttl',
  'expires',
  'max-length',
  'max-length-bytes',
  'overflow',
  'delivery-limit',
  'dead-letter-exchange',
];
const ARGUMENTS = new Map(QUEUES.map(({ name, arguments: own }) => [name, own]));

/**
 * Whether the policies of set-up are there, and no other one changes what a queue of this system keeps.
 *
 * @param accounts the names of those of other services
 */
export async function lookAtPolicies(
  findings: Findings,
  api: ManagementApi,
  { queues, accounts }: { queues: readonly GovernedQueue[]; accounts: readonly string[] },
): Promise<void> {
  const before = findings.all.length;
  for (const name of await missingPolicies(api, accounts))
    findings.problem(`operator policy ${name}`, 'does not exist, so its queues have no limits', 'run "npm run setup"');
  const changed = new Map<string, { settings: Set<string>; names: string[] }>();
  for (const queue of queues) {
    const settings = settingsFor(queue);
    if (settings.length === 0) continue;
    const policies = [queue.policy, queue.operator_policy].filter((name) => name && name !== QUERIES).join(' or ') || QUERIES;
    const one = changed.get(policies) ?? { settings: new Set<string>(), names: [] };
    changed.set(policies, one);
    for (const setting of settings) one.settings.add(setting);
    one.names.push(queue.name);
  }
  for (const [policies, { settings, names }] of changed)
    findings.problem(
      `policy ${policies}`,
      `sets ${[...settings].join(', ')} of ${counted(names.length, 'queue')} of this system, ${names[0]} for one: commands are lost or refused`,
      policies === QUERIES
        ? 'run "npm run setup"'
        : 'narrow its pattern, or remove it with "rabbitmqctl clear_policy" or "clear_operator_policy"',
    );
  if (findings.all.length === before)
    findings.ok('policies', 'those of set-up exist, and no other one changes what a queue keeps');
}

/** The harmful settings of a queue of this system that are not its own. */
function settingsFor({ name, operator_policy: operator, effective_policy_definition: effective }: GovernedQueue): string[] {
  const own = ARGUMENTS.get(name);
  if (!own || !effective) return [];
  const isQuorum = own['x-queue-type'] === 'quorum';
  const wanted: Readonly<Record<string, unknown>> = operator === QUERIES ? QUERY_LIMITS : {};
  return HARMFUL.filter((setting) => {
    const value = effective[setting];
    const argument = own[`x-${setting}`];
    if (value === undefined || value === wanted[setting]) return false;
    // Of two numbers the smaller one counts, and -1 is no limit, in RabbitMQ 4.
    if (typeof value === 'number') return value >= 0 && (argument === undefined || value < Number(argument));
    // Of two texts the argument counts, but the policy for the overflow of a quorum queue.
    return argument === undefined || (setting === 'overflow' && isQuorum && value !== argument);
  });
}
