import { createRequire } from 'node:module';
import { join } from 'node:path';
import { ROOT } from '../checkout/project.mjs';
import { table } from './table.mjs';

/** @param {string} file */
const built = (file) => createRequire(import.meta.url)(join(ROOT, 'dist/libs/contracts/src', file));

/**
 * @typedef {object} Declared
 * @property {{ path: string }} http
 * @property {Record<string, { when: string, message: string }>} [errors]
 */

/** The errors that one operation has for reasons of its own. An error that several share is one row. */
export function ownErrorsTable() {
  /** @type {Declared[]} */
  const messages = built('all-messages.js').HTTP_MESSAGES;
  /** @type {{ HTTP_STATUS: Record<string, number> }} */
  const { HTTP_STATUS } = built('error.js');
  /** @type {Map<string, { operations: string[], cells: string[] }>} */
  const rows = new Map();
  for (const { http, errors = {} } of messages)
    for (const [status, { when, message }] of Object.entries(errors)) {
      const cells = [String(HTTP_STATUS[status]), `\`${status}\``, when, `\`${message}\``];
      const row = rows.get(cells.join()) ?? { operations: [], cells };
      row.operations.push(http.path.replace('/v1/', ''));
      rows.set(cells.join(), row);
    }
  return table(
    ['Operation', 'HTTP', '`error.status`', 'Cause', '`message`'],
    [...rows.values()].map(({ operations, cells }) => [operations.join(', '), ...cells]),
  );
}
