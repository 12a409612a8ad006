import { built } from '../checkout/project.mjs';
import { table } from './table.mjs';

/**
 * @typedef {object} Declared
 * @property {{ path: string, effect: string, goodToKnow: string, idempotent?: boolean }} http
 * @property {Record<string, { when: string, message: string }>} [errors]
 */

/** @type {() => Declared[]} */
const declared = () => built('libs/contracts/src/all-messages.js').HTTP_MESSAGES;

/** @param {Declared} message */
const operationOf = ({ http: { path } }) => path.replace('/v1/', '');

/** Every operation over HTTP, and those that take an `Idempotency-Key`. */
export function httpOperations() {
  const messages = declared();
  const keyed = messages.filter(({ http }) => http.idempotent).map((message) => `\`${operationOf(message)}\``);
  const rows = messages.map(({ http }) => [`\`${http.path}\``, http.effect, http.goodToKnow]);
  const header = `${keyed.slice(0, -1).join(', ')} and ${keyed.at(-1)} take an \`Idempotency-Key\` header.`;
  const kept = 'The first answer is kept for at least 24 hours, and a repetition gets it again.';
  return `${table(['Operation', 'Effect', 'Good to know'], rows)}\n\n${header} ${kept}`;
}

/** The errors that one operation has for reasons of its own. An error that several share is one row. */
export function ownErrorsTable() {
  /** @type {{ HTTP_STATUS: Record<string, number> }} */
  const { HTTP_STATUS } = built('libs/contracts/src/error.js');
  /** @type {Map<string, { operations: string[], cells: string[] }>} */
  const rows = new Map();
  for (const operation of declared())
    for (const [status, { when, message }] of Object.entries(operation.errors ?? {})) {
      const cells = [String(HTTP_STATUS[status]), `\`${status}\``, when, `\`${message}\``];
      const row = rows.get(cells.join()) ?? { operations: [], cells };
      row.operations.push(operationOf(operation));
      rows.set(cells.join(), row);
    }
  return table(
    ['Operation', 'HTTP', '`error.status`', 'Cause', '`message`'],
    [...rows.values()].map(({ operations, cells }) => [operations.join(', '), ...cells]),
  );
}
