import { createRequire } from 'node:module';
import { join } from 'node:path';
import { ROOT } from '../lib/project.mjs';
import { table } from './table.mjs';

const code = (text) => `\`${text}\``;

/** Exchanges, queues and bindings, from the same lists that are declared at set-up. */
export function topologyTables() {
  const load = createRequire(import.meta.url);
  const { EXCHANGES, QUEUES, BINDINGS } = load(join(ROOT, 'dist/libs/rabbitmq/src/topology.js'));
  const argumentsOf = (queue) =>
    Object.entries(queue.arguments)
      .map(([name, value]) => code(`${name}: ${value}`))
      .join('<br>');
  return [
    table(
      ['Exchange', 'Type', 'Who publishes what'],
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
