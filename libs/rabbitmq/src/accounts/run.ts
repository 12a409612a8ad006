import { randomBytes } from 'node:crypto';
import { rightsFor, type AccountPurpose } from '../accounts';
import { setRights } from '../declare-accounts';
import type { ManagementApi } from '../management-api';
import type { Invocation } from './command-line';

/** It cannot be done: exit code 1. */
export class AccountError extends Error {}

/** What a command has to say: a person reads the lines, a script reads the data. */
export interface Output {
  lines: string[];
  data: Record<string, unknown>;
}

/** Marks the accounts that this tool made: it touches no other. */
const TAG = 'collaboration-integration';

interface User {
  name: string;
  /** A list, or with commas between before RabbitMQ 3.9. */
  tags: string[] | string;
}

interface Named {
  name: string;
}

/**
 * @param amqpUrl of the full-rights account: the URLs that are printed differ in user and password
 * @throws AccountError; Error of the management API
 */
export async function run(api: ManagementApi, amqpUrl: string, invocation: Invocation): Promise<Output> {
  switch (invocation.command) {
    case 'create':
      return create(api, amqpUrl, invocation.name, invocation.purpose);
    case 'change':
      return change(api, invocation.name, invocation.purpose);
    case 'rotate':
      return rotate(api, amqpUrl, invocation.name);
    case 'list':
      return list(api);
    case 'delete':
      return remove(api, invocation.name, invocation.queues);
  }
}

async function create(api: ManagementApi, amqpUrl: string, name: string, purpose: AccountPurpose): Promise<Output> {
  if (await api.get<User>(`users/${name}`))
    throw new AccountError(`The account ${name} exists already: change, rotate or delete it.`);
  const url = await setPassword(api, amqpUrl, name);
  await setRights(api, name, rightsFor(name, purpose));
  return {
    lines: [
      `Account ${name} created. Its URL, shown this once:`,
      url,
      ...(purpose.operations.length > 0 ? [`It may act for no tenant yet: npm run keys -- grant <key> --publisher ${name}`] : []),
    ],
    data: { name, ...purpose, url },
  };
}

async function change(api: ManagementApi, name: string, purpose: AccountPurpose): Promise<Output> {
  await requireOurs(api, name);
  await setRights(api, name, rightsFor(name, purpose));
  return { lines: [`Account ${name} changed.`], data: { name, ...purpose } };
}

async function rotate(api: ManagementApi, amqpUrl: string, name: string): Promise<Output> {
  await requireOurs(api, name);
  const url = await setPassword(api, amqpUrl, name);
  return { lines: [`Account ${name} has a new password. Its URL, shown this once:`, url], data: { name, url } };
}

async function list(api: ManagementApi): Promise<Output> {
  const users = ((await api.get<User[]>('users')) ?? []).filter(isOurs);
  const accounts: { name: string; operations: string[]; replies: boolean; events: string[] }[] = [];
  for (const { name } of users) {
    const topics = (await api.get<{ exchange: string; write: string; read: string }[]>(`users/${name}/topic-permissions`)) ?? [];
    const { read } = (await api.get<{ read: string }>(`permissions/${api.vhost}/${name}`)) ?? { read: '' };
    const ofExchange = (exchange: string) => topics.find((one) => one.exchange === exchange);
    accounts.push({
      name,
      operations: namesIn(ofExchange('commands')?.write),
      replies: namesIn(read).includes('replies'),
      events: namesIn(ofExchange('events')?.read),
    });
  }
  const lines = accounts.map(({ name, operations, replies, events }) =>
    [
      name,
      ...(operations.length > 0 ? [`operations ${operations.join(',')}`] : []),
      ...(replies ? ['replies'] : []),
      ...(events.length > 0 ? [`events ${events.join(',')}`] : []),
    ].join('  '),
  );
  return { lines: lines.length > 0 ? lines : ['There are no accounts of other services.'], data: { accounts } };
}

async function remove(api: ManagementApi, name: string, queues: boolean): Promise<Output> {
  await requireOurs(api, name);
  await api.delete(`users/${name}`);
  const own = async (kind: string) =>
    ((await api.get<Named[]>(`${kind}/${api.vhost}`)) ?? []).filter((one) => one.name.startsWith(`${name}.`));
  const left = await own('queues');
  if (!queues) {
    const names = left.map((queue) => queue.name).join(', ');
    return { lines: [`Account ${name} deleted.${names && ` Its queues stay, with what is in them: ${names}.`}`], data: { name } };
  }
  for (const queue of left) await api.delete(`queues/${api.vhost}/${encodeURIComponent(queue.name)}`);
  for (const exchange of await own('exchanges')) await api.delete(`exchanges/${api.vhost}/${encodeURIComponent(exchange.name)}`);
  return { lines: [`Account ${name} deleted, with ${left.length} queues.`], data: { name } };
}

async function setPassword(api: ManagementApi, amqpUrl: string, name: string): Promise<string> {
  const password = randomBytes(24).toString('hex');
  await api.put(`users/${name}`, { password, tags: TAG });
  const url = new URL(amqpUrl);
  url.username = name;
  url.password = password;
  return url.href;
}

async function requireOurs(api: ManagementApi, name: string): Promise<void> {
  const user = await api.get<User>(`users/${name}`);
  if (!user) throw new AccountError(`There is no account ${name}.`);
  if (!isOurs(user)) throw new AccountError(`The account ${name} was not made by this tool: it is left alone.`);
}

const isOurs = ({ tags }: User) => (Array.isArray(tags) ? tags : tags.split(',')).includes(TAG);

/** What a pattern of ours lists. */
const namesIn = (pattern = '^$') =>
  pattern
    .replace(/^\^\(?|\)?\$$/g, '')
    .split('|')
    .map((name) => name.replaceAll('\\', ''))
    .filter(Boolean);
