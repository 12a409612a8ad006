import { cpuTable } from '../lib/findings.mjs';
import { interleaved } from '../lib/rounds.mjs';
import { ORGANIZATION, seedDirect, seedOurs, usersOf } from '../lib/seed.mjs';
import { spread, two, whole } from '../lib/statistics.mjs';

export const title = 'notifications/get, 50 newest of a user, 64 connections';

const STORED = 100_000;
const LEAST = 0.5;
const STRETCH = 0.6;

/** @param {import('../lib/laboratory.mjs').Laboratory} laboratory @param {import('../lib/modes.mjs').Mode} mode */
export async function run(laboratory, { rounds, seconds }) {
  const ours = await laboratory.freshSystem('ours');
  const direct = await laboratory.freshSystem('direct');
  // Without any to all, which the direct service does not know.
  await seedOurs(ours.sql, STORED, { toAll: false });
  await seedDirect(direct.sql, STORED);
  const requests = Array.from({ length: usersOf(STORED) }, (_, number) => ({
    organizationId: ORGANIZATION,
    userId: `user${number}`,
    pageSize: 50,
  }));
  for (const system of [ours, direct]) await expectFullPage(system, requests[0]);
  const load = { operation: 'notifications/get', workload: { name: 'requests', requests }, seconds };
  const found = await interleaved(laboratory, ['ours', 'direct'], rounds, () => load);
  const ratio = found.ours.perSecond / found.direct.perSecond;
  return {
    verdicts: [
      {
        what: `${title}: against the direct service`,
        target: `at least ${LEAST} ×, stretch ${STRETCH} ×`,
        reached: `${two(ratio)} × (${whole(found.ours.perSecond)}/s to ${whole(found.direct.perSecond)}/s)`,
        spread: `${spread(found.ours.runs, ({ perSecond }) => perSecond)}/s`,
        met: ratio >= LEAST,
      },
    ],
    tables: [cpuTable(title, found)],
  };
}

/**
 * The one that answers less would win.
 * @param {import('../lib/system.mjs').System} system
 * @param {{ pageSize: number }} request
 */
async function expectFullPage(system, request) {
  const { result } = await system.call('notifications/get', request);
  if (result.data.length !== request.pageSize) throw new Error(`${system.name} answers ${result.data.length} notifications`);
}
