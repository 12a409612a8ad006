import { mayDeclare, purposeOf, type Permissions } from '@app/rabbitmq-admin/accounts/existing';
import { TooLong, type ManagementApi } from '@app/rabbitmq-admin/management-api';
import { SIGN_OF_UPGRADE } from '@app/rabbitmq/topology/earlier-topology';
import { BINDINGS, EXCHANGES, LANES } from '@app/rabbitmq/topology/topology';
import { counted } from '@app/runtime/counted';
import type { Findings } from '../finding';

interface Binding {
  destination: string;
  routing_key: string;
}

/**
 * Compares the exchanges and the bindings of this system's queues with what set-up declares. A deleted exchange takes its bindings along.
 *
 * @param queues the names of those that exist
 */
export async function lookAtExchanges(findings: Findings, api: ManagementApi, queues: ReadonlySet<string>): Promise<void> {
  const before = findings.all.length;
  const existing = new Set((await api.list<{ name: string }>(`exchanges/${api.vhost}?columns=name`)).map(({ name }) => name));
  for (const { name } of EXCHANGES) {
    const problem = (found: string) => findings.problem(`exchange ${name}`, found, 'run "npm run setup"');
    if (!existing.has(name)) {
      problem('does not exist');
      continue;
    }
    // During an upgrade it leads to the queues of the earlier version.
    const wanted =
      name === LANES[0] && queues.has(SIGN_OF_UPGRADE)
        ? []
        : BINDINGS.filter(({ exchange, queue }) => exchange === name && queues.has(queue));
    if (wanted.length === 0) continue;
    const bound = (await bindingsOf(api, name)) ?? [];
    const missing = wanted.filter(
      ({ queue, routingKey }) => !bound.some((one) => one.destination === queue && one.routing_key === routingKey),
    );
    const [first] = missing;
    if (first) problem(`lacks ${counted(missing.length, 'binding')}: ${first.routingKey} does not reach ${first.queue}, for one`);
  }
  if (findings.all.length === before)
    findings.ok('exchanges', `all ${EXCHANGES.length} exist, and are bound to the queues of this system`);
}

/** @returns undefined without such an exchange */
const bindingsOf = (api: ManagementApi, exchange: string): Promise<Binding[] | undefined> =>
  api.get<Binding[]>(`exchanges/${api.vhost}/${exchange}/bindings/source?columns=destination,routing_key`);

/** Whether the events that an account was made for reach a queue of it. Set-up does not know its queues, and does not bind them again. */
export async function lookAtListeners(
  findings: Findings,
  api: ManagementApi,
  accounts: ReadonlyMap<string, Permissions>,
): Promise<void> {
  if (accounts.size === 0) return;
  const bound = (await bindingsOf(api, 'events')) ?? [];
  for (const [name, permissions] of accounts) {
    // It binds its queues itself, to events of its choice.
    if (mayDeclare(name, permissions)) continue;
    const { events } = await purposeOf(api, name);
    const reaching = bound.filter(({ destination }) => destination.startsWith(`${name}.`)).map(({ routing_key: key }) => key);
    const missing = events.filter((type) => !reaching.includes(type));
    if (missing.length > 0)
      findings.problem(
        `account ${name}`,
        `listens to ${missing.join(', ')}, and no queue of it gets them`,
        `run "npm run accounts -- change ${name}"`,
      );
  }
}

/** Accounts can bind what they may read to their lane: `replies`, and the exchanges of their dead letters. Nobody else binds anything to it. */
export async function lookAtLane(findings: Findings, api: ManagementApi, lane: string): Promise<void> {
  const warn = (found: string) =>
    findings.warning(`exchange ${lane}`, found, 'find the account in this lane, and delete the bindings: docs/security.md');
  try {
    const sources =
      (await api.get<{ source: string }[]>(`exchanges/${api.vhost}/${lane}/bindings/destination?columns=source`)) ?? [];
    if (sources.length > 0)
      warn(
        `is bound ${counted(sources.length, 'time')} to other exchanges, ${sources[0]?.source} for one, and this system never does that`,
      );
  } catch (error) {
    if (!(error instanceof TooLong)) throw error;
    warn('is bound to other exchanges more often than can be read, and this system never does that');
  }
}
