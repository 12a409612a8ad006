import { join } from 'node:path';
import { runQuietly } from '../../scripts/processes/command.mjs';
import { report } from '../../scripts/checkout/progress.mjs';
import { ROOT } from '../../scripts/checkout/project.mjs';
import { eventually } from '../lib/eventually.mjs';
import { median, spread, whole } from '../lib/statistics.mjs';

export const title = 'commands published directly, without a reply, drained by one writer';

const LEAST = 8000;
const DRAINED_WITHIN_MS = 120_000;
/** Every stored notification takes a number here: commits are counted without counting rows. */
const STORED = 'SELECT CASE WHEN is_called THEN last_value ELSE 0 END AS stored FROM notifications.outbox_seq_seq';

/**
 * They are published while no writer runs, then one starts: what publishing takes is not what draining takes.
 * @param {import('../lib/laboratory.mjs').Laboratory} laboratory
 * @param {import('../lib/modes.mjs').Mode} mode
 */
export async function run(laboratory, { rounds, commands }) {
  const runs = [];
  for (let round = 0; round < rounds; round++) {
    const system = await laboratory.system('ours');
    await system.settle();
    runs.push(await drain(laboratory, system, commands));
    report(`    round ${round + 1} of ${rounds}: ${whole(runs[round])}/s`);
  }
  return {
    verdicts: [
      {
        what: title,
        target: `at least ${whole(LEAST)} a second`,
        reached: `${whole(median(runs))}/s`,
        spread: `${spread(runs, (rate) => rate)}/s`,
        met: median(runs) >= LEAST,
      },
    ],
  };
}

/**
 * @param {import('../lib/laboratory.mjs').Laboratory} laboratory
 * @param {import('../lib/ours.mjs').Ours} system
 * @param {number} commands
 */
async function drain(laboratory, system, commands) {
  const stored = async () => Number((await system.sql.query(STORED)).rows[0].stored);
  await system.setWriters(0);
  const before = await stored();
  const env = { PATH: process.env.PATH, AMQP_URL: laboratory.rabbit.url };
  const publisher = [join(ROOT, 'bench/publisher.mjs'), JSON.stringify({ count: commands })];
  await runQuietly(process.execPath, publisher, { cwd: ROOT, env, name: 'The publisher' });
  await laboratory.admin.query('CHECKPOINT');
  let first = { count: 0, at: 0 };
  // From the first batch on: how long a process takes to start is something else.
  const started = system.setWriters(1);
  await eventually('the first command is stored', DRAINED_WITHIN_MS, async () => {
    const count = (await stored()) - before;
    if (count > 0) first = { count, at: performance.now() };
    return count > 0;
  });
  await eventually('all commands are stored', DRAINED_WITHIN_MS, async () => (await stored()) - before >= commands);
  const seconds = (performance.now() - first.at) / 1000;
  await started;
  system.check();
  return (commands - first.count) / seconds;
}
