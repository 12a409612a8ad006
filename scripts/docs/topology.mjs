import { built } from '../checkout/project.mjs';
import { code, table } from './table.mjs';

/** The rights of each broker account, from the list by which set-up creates them. */
export function accountsTable() {
  const { RIGHTS } = built('libs/rabbitmq-admin/src/accounts/rights.js');
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

/** @param {string} name in front of a queue's name */
const ofService = (name) => new RegExp(`(?<![\\w.])${name}(?=\\.)`, 'g');
/** @param {string} number behind the name of an exchange or a queue */
const ofLane = (number) => new RegExp(`(?<=\\.)${number}\\b`, 'g');
/** Of a message. Each service has its own. */
const PATTERN = /\.v\d+$/;
const DELAY = '<delay>';

/** Exchanges, queues and bindings, from the same lists that are declared at set-up. Rows that differ in one cell are one row. */
export function topologyTables() {
  /** @type {typeof import('../../libs/rabbitmq/src/topology/topology.ts')} */
  const { EXCHANGES, QUEUES, BINDINGS, LANE_NUMBERS, RETRY_DELAYS, SERVICES } = built('libs/rabbitmq/src/topology/topology.js');
  /** @param {{ arguments: Record<string, string | number> }} queue */
  const argumentsOf = (queue) =>
    Object.entries(queue.arguments)
      .map(([name, value]) => code(`${name}: ${value}`))
      .join('<br>');
  /** @param {string[]} row @returns without the delay of a queue of retries, so that the rows of all delays are equal */
  const ofAnyDelay = (row) =>
    RETRY_DELAYS.reduce(
      (cells, { name, milliseconds }) =>
        cells.map((cell) =>
          cell.replace(`.retry.${name}\``, `.retry.${DELAY}\``).replace(`ttl: ${milliseconds}\``, `ttl: ${DELAY}\``),
        ),
      row,
    );
  const queues = ofEach(
    { names: SERVICES, name: '<service>', pattern: ofService },
    QUEUES.map((queue) => ofAnyDelay([code(queue.name), argumentsOf(queue)])),
  );
  const ofServices = ofEach(
    { names: SERVICES, name: '<service>', pattern: ofService },
    BINDINGS.map(({ exchange, routingKey, queue }) => ofAnyDelay([exchange, routingKey, queue].map(code))),
    ([, key]) => !PATTERN.test(key.slice(1, -1)),
  );
  const bindings = ofEach({ names: LANE_NUMBERS.slice(1).map(String), name: '<lane>', pattern: ofLane }, ofServices);
  return [
    table(
      ['Exchange', 'Type', 'Purpose'],
      EXCHANGES.map(({ name, type, purpose }) => [code(name), type, purpose]),
    ),
    table(['Queues', 'Arguments'], joined(queues, 0, '<br>')),
    table(['Exchange', 'Routing keys', 'Queue'], joined(bindings, 1, ', ')),
  ].join('\n\n');
}

/**
 * One row in place of the rows that each service or lane has, and that differ in its name alone.
 * @param {{ names: readonly string[], name: string, pattern: (name: string) => RegExp }} of
 * @param {string[][]} rows
 * @param {(row: string[]) => boolean} [mayBe]
 */
function ofEach({ names, name, pattern }, rows, mayBe = () => true) {
  const key = (/** @type {string[]} */ row) => row.join('\n');
  const all = new Set(rows.map(key));
  const named = (/** @type {string[]} */ row, /** @type {string} */ from, /** @type {string} */ to) =>
    row.map((cell) => cell.replaceAll(pattern(from), to));
  const general = rows.map((row) => {
    const found = names.find((one) => key(named(row, one, name)) !== key(row));
    if (!found || !mayBe(row)) return row;
    return names.every((other) => all.has(key(named(row, found, other)))) ? named(row, found, name) : row;
  });
  return [...new Map(general.map((row) => [key(row), row])).values()];
}

/**
 * One row in place of those that differ in one cell alone.
 * @param {string[][]} rows
 * @param {number} cell
 * @param {string} separator
 */
function joined(rows, cell, separator) {
  /** @type {Map<string, string[]>} */
  const found = new Map();
  for (const row of rows) {
    const key = row.toSpliced(cell, 1).join('\n');
    const same = found.get(key);
    if (same) same[cell] += separator + row[cell];
    else found.set(key, [...row]);
  }
  return [...found.values()];
}
