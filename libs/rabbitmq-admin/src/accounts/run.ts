import { randomBytes } from 'node:crypto';
import { counted } from '@app/runtime/counted';
import { brokerUrlAs } from '@app/runtime/settings/broker-url';
import type { Output } from '@app/runtime/tool-output';
import { rightsFor, type AccountPurpose } from './rights';
import { setRights } from './declare-accounts';
import type { ManagementApi } from '../management-api';
import { LANES } from '@app/rabbitmq/topology/topology';
import type { AccountRequest, Invocation } from './command-line';
import { allPermissions, mayDeclare, purposeOf, quietestLane, type Permissions } from './existing';
import { boundQueues, DEFAULT_LIMITS, isBounded, limitsOf, setLimits, unboundQueues } from './limits';
import { bindListenerQueue, declareListenerQueue, isRefusing, listenerQueues, ownQueues, queueName } from './listener-queues';
import { isOurs, TAG, taggedAccounts, tagsOf, type User } from './tagged-accounts';

/** The command cannot be executed: exit code 1. */
export class AccountError extends Error {}

interface Named {
  name: string;
}

/**
 * Executes a command.
 *
 * @param amqpUrl URL of the full-rights account. The printed URLs differ only in user and password
 * @throws AccountError; Error of the management API
 */
export async function run(api: ManagementApi, amqpUrl: string, invocation: Invocation): Promise<Output> {
  switch (invocation.command) {
    case 'create':
      return create(api, amqpUrl, invocation.name, invocation.request);
    case 'change':
      return change(api, invocation.name, invocation.request);
    case 'rotate':
      return rotate(api, amqpUrl, invocation.name);
    case 'list':
      return list(api);
    case 'delete':
      return remove(api, invocation.name, invocation.queues);
  }
}

async function create(api: ManagementApi, amqpUrl: string, name: string, request: AccountRequest): Promise<Output> {
  if (await api.get<User>(`users/${name}`))
    throw new AccountError(`The account ${name} exists already: change, rotate or delete it.`);
  const url = await setPassword(api, amqpUrl, name);
  const { lines, data } = await apply(api, name, request).catch((error: unknown) => {
    const left = `The account ${name} is there already, and not complete: delete it, and create it again`;
    throw new AccountError(`${(error as Error).message}. ${left}.`, { cause: error });
  });
  return {
    lines: [
      `Account ${name} created. Its URL, shown this once:`,
      url,
      ...lines,
      ...(request.operations.length > 0
        ? [`It acts for API keys that are granted to this name or to all accounts: npm run keys -- grant KEY --publisher ${name}`]
        : []),
    ],
    data: { ...data, url },
  };
}

async function change(api: ManagementApi, name: string, request: AccountRequest): Promise<Output> {
  await requireOurs(api, name);
  const before = (await allPermissions(api)).get(name);
  const { lines, data } = await apply(api, name, request.keepsPurpose ? await kept(api, name, request, before) : request, before);
  const declared = before && mayDeclare(name, before);
  return {
    lines: [
      `Account ${name} changed.`,
      ...lines,
      ...(declared
        ? ['It may no longer declare queues: a program that does needs the client of this version, or the queue above.']
        : []),
    ],
    data,
  };
}

/** The request with the present purpose of the account. */
async function kept(api: ManagementApi, name: string, request: AccountRequest, before?: Permissions): Promise<AccountRequest> {
  const { lane, ...purpose } = await purposeOf(api, name, before);
  const missing = (option: string, needed: string) => new AccountError(`${option} needs ${needed}: ${name} has none.`);
  if (request.lane !== undefined && purpose.operations.length === 0) throw missing('--lane', '--operations');
  if (request.queues !== undefined && purpose.events.length === 0) throw missing('--queue', '--events');
  return { ...request, ...purpose, lane: request.lane ?? lane };
}

/** Sets limits, queues and rights of an account exactly as requested. @param before its current permissions */
async function apply(api: ManagementApi, name: string, request: AccountRequest, before?: Permissions): Promise<Output> {
  const { operations, replies, events } = request;
  const lane = operations.length > 0 ? (request.lane ?? before?.lane ?? (await quietestLane(api))) : undefined;
  const purpose: AccountPurpose = { operations, lane, replies, events };
  const existing = await limitsOf(api, name);
  const limits = {
    connections: request.connections ?? existing.connections ?? DEFAULT_LIMITS.connections,
    channels: request.channels ?? existing.channels ?? DEFAULT_LIMITS.channels,
  };
  await setLimits(api, name, limits);
  await boundQueues(api, name);
  const { queues, lines } = await applyToQueues(api, name, request);
  await setRights(api, name, rightsFor(name, purpose));
  const exchange = lane === undefined ? undefined : LANES[lane];
  return {
    lines: [...(exchange ? [`Publish to exchange ${exchange}: export COMMANDS_EXCHANGE=${exchange}`] : []), ...lines],
    data: { name, ...purpose, exchange, queues, ...limits },
  };
}

/** Declares missing queues, and binds the requested (else the existing) queues to the events. All other queues of the account lose their bindings. */
async function applyToQueues(api: ManagementApi, name: string, { events, queues }: AccountRequest) {
  const found = await listenerQueues(api, name);
  const unnamed = found.length > 0 ? found.map((queue) => queue.name) : [queueName(name)];
  const wanted = events.length === 0 ? [] : (queues?.map((suffix) => queueName(name, suffix)) ?? unnamed);
  const lines: string[] = [];
  for (const queue of wanted) {
    const existing = found.find((one) => one.name === queue);
    if (!existing) await declareListenerQueue(api, queue);
    await bindListenerQueue(api, queue, events);
    lines.push(`Listen to queue ${queue}.`);
    if (existing && isRefusing(existing)) {
      lines.push(
        `Queue ${queue} rejects events when it is full, and loses them: delete it when it is empty, and change the account again.`,
      );
    }
  }
  for (const { name: queue } of found.filter((one) => !wanted.includes(one.name))) {
    await bindListenerQueue(api, queue, []);
    lines.push(`Queue ${queue} stays with its messages, and gets no more events.`);
  }
  return { queues: wanted, lines };
}

async function rotate(api: ManagementApi, amqpUrl: string, name: string): Promise<Output> {
  const tags = tagsOf(await requireOurs(api, name));
  const url = await setPassword(api, amqpUrl, name, tags);
  return {
    lines: [
      `Account ${name} has a new password. Its URL, shown this once:`,
      url,
      `Connections with the old one stay open: rabbitmqctl close_all_user_connections ${name} rotated`,
    ],
    data: { name, url },
  };
}

async function list(api: ManagementApi): Promise<Output> {
  const permissions = await allPermissions(api);
  const accounts = [];
  for (const name of await taggedAccounts(api)) {
    const purpose = await purposeOf(api, name, permissions.get(name));
    const queues = (await listenerQueues(api, name)).map((queue) => queue.name);
    accounts.push({ name, ...purpose, queues, ...(await limitsOf(api, name)) });
  }
  const lines = accounts.map(({ name, operations, lane, replies, events, queues, connections, channels }) =>
    [
      name,
      ...(operations.length > 0 ? [`operations ${operations.join(',')}`] : []),
      ...(lane === undefined ? [] : [`lane ${lane}`]),
      ...(replies ? ['replies'] : []),
      ...(events.length > 0 ? [`events ${events.join(',')}`] : []),
      ...(queues.length > 0 ? [`queues ${queues.join(',')}`] : []),
      ...(connections === undefined ? [] : [`connections ${connections}`]),
      ...(channels === undefined ? [] : [`channels ${channels}`]),
    ].join('  '),
  );
  return { lines: lines.length > 0 ? lines : ['There are no accounts of other services.'], data: { accounts } };
}

async function remove(api: ManagementApi, name: string, queues: boolean): Promise<Output> {
  const grants = `Grants to its name stay, and a new account of this name has them: npm run keys -- withdraw KEY --publisher ${name}`;
  // An earlier run has deleted the account first, and has left or not reached its queues.
  const isDeleted = !(await api.get<User>(`users/${name}`)) && (await isBounded(api, name));
  if (!isDeleted) await requireOurs(api, name);
  await api.delete(`users/${name}`);
  const left = await ownQueues(api, name);
  if (!queues && left.length > 0) {
    const names = left.map((queue) => queue.name).join(', ');
    return {
      lines: [
        `Account ${name} deleted. Its queues stay with their messages, and still get events: ${names}.`,
        `To delete them as well: npm run accounts -- delete ${name} --queues`,
        grants,
      ],
      data: { name, queues: left.map((queue) => queue.name) },
    };
  }
  for (const queue of left) await api.delete(`queues/${api.vhost}/${encodeURIComponent(queue.name)}`);
  const exchanges = (await api.list<Named>(`exchanges/${api.vhost}`)).filter((one) => one.name.startsWith(`${name}.`));
  for (const exchange of exchanges) await api.delete(`exchanges/${api.vhost}/${encodeURIComponent(exchange.name)}`);
  await unboundQueues(api, name);
  return {
    lines: [`Account ${name} deleted${queues ? `, with ${counted(left.length, 'queue')}` : ''}.`, grants],
    data: { name, queues: [] },
  };
}

async function setPassword(api: ManagementApi, amqpUrl: string, name: string, tags: readonly string[] = [TAG]): Promise<string> {
  const password = randomBytes(24).toString('hex');
  await api.put(`users/${name}`, { password, tags: tags.join(',') });
  return brokerUrlAs(amqpUrl, name, password);
}

async function requireOurs(api: ManagementApi, name: string): Promise<User> {
  const user = await api.get<User>(`users/${name}`);
  if (!user) throw new AccountError(`There is no account ${name}.`);
  if (!isOurs(user)) throw new AccountError(`The account ${name} was not made by this tool: it is left alone.`);
  return user;
}
