import { cpSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from '../../scripts/checkout/project.mjs';
import { BUILD } from '../lib/baselines.mjs';
import { cpuTable } from '../lib/findings.mjs';
import { measure } from '../lib/load.mjs';
import { spread, summaryOf, two, whole } from '../lib/statistics.mjs';

export const title = 'events of notifications/add';

const MOST_COST = 0.15;
const SERVICE = 'apps/notifications/src';
/**
 * What writes and publishes events, in the compiled service.
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

/** @param {import('../lib/laboratory.mjs').Laboratory} laboratory @param {import('../lib/modes.mjs').Mode} mode */
export async function run(laboratory, { rounds, seconds }) {
  const load = { operation: 'notifications/add', workload: { name: 'addNotification', recipients: 2 }, seconds };
  const dists = { ours: undefined, without: buildWithout() };
  /** @type {Record<'ours' | 'without', import('../lib/load.mjs').Run[]>} */
  const runs = { ours: [], without: [] };
  for (let round = 0; round < rounds; round++) {
    /** @type {('ours' | 'without')[]} */
    const order = round % 2 === 0 ? ['ours', 'without'] : ['without', 'ours'];
    // One at a time: they would take commands from the same queue.
    for (const name of order) {
      const system = await laboratory.freshSystem('ours', { dist: dists[name] });
      runs[name].push(await measure(laboratory, system, load));
    }
  }
  await laboratory.stopSystem('ours');
  const found = { ours: summaryOf(runs.ours), without: summaryOf(runs.without) };
  const { ours, without } = found;
  const cost = 1 - ours.perSecond / without.perSecond;
  return {
    verdicts: [
      {
        what: `${title}: what they cost of its throughput`,
        target: `under ${MOST_COST * 100} %`,
        reached: `${two(cost * 100)} % (${whole(ours.perSecond)}/s instead of ${whole(without.perSecond)}/s)`,
        spread: `${spread(
          ours.runs.map((run, round) => 1 - run.perSecond / without.runs[round].perSecond),
          (share) => share * 100,
          two,
        )} %`,
        met: cost < MOST_COST,
      },
    ],
    tables: [cpuTable(title, found)],
  };
}

/** The same build with no event written, and none looked for. */
function buildWithout() {
  const dist = join(BUILD, 'without-events');
  rmSync(dist, { recursive: true, force: true });
  cpSync(join(ROOT, 'dist'), dist, { recursive: true });
  for (const [file, from, to] of EDITS) {
    const source = readFileSync(join(dist, file), 'utf8');
    if (!from.test(source)) throw new Error(`${file} does not contain: ${from}`);
    writeFileSync(join(dist, file), source.replace(from, to));
  }
  return dist;
}
