import { createRequire } from 'node:module';
import { join } from 'node:path';
import { ROOT } from '../checkout/project.mjs';
import { table } from './table.mjs';

/** @param {string} text */
const code = (text) => `\`${text}\``;

/** The rights of each broker account, from the list by which set-up creates them. */
export function accountsTable() {
  const { RIGHTS } = createRequire(import.meta.url)(join(ROOT, 'dist/libs/rabbitmq-admin/src/accounts/rights.js'));
  return table(
    [
      'Account',
      'configure',
      'write',
      'read',
      'topic permission: write to `calls`, `commands`, …',
      'topic permission: read of `events.own` and `events`',
    ],
    Object.entries(RIGHTS).map(([account, { configure, write, read, commands, events }]) =>
      [account, configure, write, read, commands, events].map(code),
    ),
  );
}

/** Exchanges, queues and bindings, from the same lists that are declared at set-up. */
export function topologyTables() {
  const load = createRequire(import.meta.url);
  /** @type {typeof import('../../libs/rabbitmq/src/topology/topology.ts')} */
  const { EXCHANGES, QUEUES, BINDINGS } = load(join(ROOT, 'dist/libs/rabbitmq/src/topology/topology.js'));
  /** @param {{ arguments: Record<string, string | number> }} queue */
  const argumentsOf = (queue) =>
    Object.entries(queue.arguments)
      .map(([name, value]) => code(`${name}: ${value}`))
      .join('<br>');
  return [
    table(
      ['Exchange', 'Type', 'Purpose'],
      EXCHANGES.map(({ name, type, purpose }) => [code(name), type, purpose]),
    ),
    table(
      ['Queue', 'Arguments'],
      QUEUES.map((queue) => [code(queue.name), argumentsOf(queue)]),
    ),
    table(
      ['Exchange', 'Routing key', 'Queue'],
      BINDINGS.map(({ exchange, routingKey, queue }) => [exchange, routingKey, queue].map(code)),
    ),
  ].join('\n\n');
}
