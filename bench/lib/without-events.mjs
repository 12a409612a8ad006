import { cpSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { bundle } from '../../scripts/checkout/bundle.mjs';
import { ROOT } from '../../scripts/checkout/project.mjs';
import { BUILD } from './baselines.mjs';

const SERVICE = 'apps/notifications/src';
/**
 * The code that writes and publishes events, in the compiled service.
 * @type {[file: string, from: RegExp, to: string][]}
 */
const EDITS = [
  [`${SERVICE}/writer/notification-writer.js`, /this\.outbox\.add\([^;]*;/, ''],
  [`${SERVICE}/db/notification-added.js`, /const data = notificationAdded\(notification, ms\);/, "const data = '';"],
  [
    `${SERVICE}/db/insert-notifications.sql.js`,
    /INSERT INTO outbox [^;]*?RETURNING seq, id, occurred_at\n/,
    'SELECT 0 AS seq, event_id AS id, now() AS occurred_at FROM stored\n',
  ],
];

/** The same build with no event written, and none looked for. */
export async function buildWithoutEvents() {
  const project = join(BUILD, 'without-events');
  const dist = join(project, 'dist');
  rmSync(project, { recursive: true, force: true });
  // With the documents that the gateway serves.
  for (const path of ['dist', 'openapi.json', 'asyncapi.json', 'docs/messages.html'])
    cpSync(join(ROOT, path), join(project, path), { recursive: true });
  for (const [file, from, to] of EDITS) {
    const source = readFileSync(join(dist, file), 'utf8');
    if (!from.test(source)) throw new Error(`${file} does not contain: ${from}`);
    writeFileSync(join(dist, file), source.replace(from, to));
  }
  await bundle(dist);
  return dist;
}
