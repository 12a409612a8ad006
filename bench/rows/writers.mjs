import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { report } from '../../scripts/checkout/progress.mjs';
import { ROOT } from '../../scripts/checkout/project.mjs';
import { BUILD } from '../lib/baselines.mjs';
import { cpuTable } from '../lib/findings.mjs';
import { measure } from '../lib/load.mjs';
import { spread, summaryOf, two, whole } from '../lib/statistics.mjs';

const LATENCY_MS = 5;
/** So few at a time that waiting for the database, and not the processor, is what limits a writer. */
const PREFETCH = 4;
/** How often the rate of one writer several reach. */
const TARGETS = [
  { count: 2, target: 'at least 1.8 × one writer', least: 1.8 },
  { count: 4, target: 'at least 3.2 × one writer, stretch 3.6 ×', least: 3.2 },
];
const COUNTS = [1, 2, 4];

export const title = `writers 1, 2, 4 with ${LATENCY_MS} ms of added database latency, ${PREFETCH} commands at a time each`;

/** @param {import('../lib/laboratory.mjs').Laboratory} laboratory @param {import('../lib/modes.mjs').Mode} mode */
export async function run(laboratory, { rounds, seconds }) {
  const proxy = await startProxy(new URL(laboratory.postgres.url));
  try {
    const system = await laboratory.freshSystem('ours', {
      writerDatabaseUrl: (url) => Object.assign(new URL(url), { port: proxy.port }).href,
      writerSettings: { NOTIFICATIONS_COMMAND_PREFETCH: String(PREFETCH) },
    });
    /** @type {Record<number, import('../lib/load.mjs').Run[]>} */
    const runs = Object.fromEntries(COUNTS.map((count) => [count, []]));
    const load = { operation: 'notifications/add', workload: { name: 'addNotification', recipients: 2 }, seconds };
    for (let round = 0; round < rounds; round++) {
      for (let turn = 0; turn < COUNTS.length; turn++) {
        const count = COUNTS[(round + turn) % COUNTS.length];
        await system.setWriters(count);
        runs[count].push(await measure(laboratory, system, load));
      }
      const rates = COUNTS.map((count) => `${count}: ${whole(runs[count][round].perSecond)}/s`);
      report(`    round ${round + 1} of ${rounds}: ${rates.join(', ')}`);
    }
    return findings(Object.fromEntries(COUNTS.map((count) => [count, summaryOf(runs[count])])));
  } finally {
    await laboratory.stopSystem('ours');
    await proxy.stop();
  }
}

/** @param {Record<number, import('../lib/statistics.mjs').Summary>} found */
function findings(found) {
  const one = found[1].perSecond;
  return {
    verdicts: TARGETS.map(({ count, target, least }) => ({
      what: `${count} writers, ${LATENCY_MS} ms of added database latency`,
      target,
      reached: `${two(found[count].perSecond / one)} × (${whole(found[count].perSecond)}/s to ${whole(one)}/s)`,
      spread: `${spread(found[count].runs, ({ perSecond }) => perSecond)}/s`,
      met: found[count].perSecond / one >= least,
    })),
    tables: [cpuTable(title, Object.fromEntries(COUNTS.map((count) => [`${count} of them`, found[count]])))],
    plots: [
      {
        file: 'writers.svg',
        title: `notifications/add, ${LATENCY_MS} ms of added database latency`,
        x: { label: 'writers' },
        y: { label: 'calls a second' },
        series: [
          { name: 'measured', points: COUNTS.map((count) => [count, found[count].perSecond]) },
          { name: 'in proportion', points: COUNTS.map((count) => [count, one * count]) },
        ],
      },
    ],
  };
}

/** @param {URL} options */
async function startProxy({ hostname: host, port }) {
  const program = join(BUILD, 'test/faults/harness/fault-proxy.js');
  const options = JSON.stringify({ host, port: Number(port), latencyMs: LATENCY_MS, program });
  const child = spawn(process.execPath, [join(ROOT, 'bench/latency-proxy.mjs'), options], {
    stdio: ['pipe', 'pipe', 'inherit'],
    detached: true, // Ctrl-C in the terminal is ours to handle, in order
  });
  const [address] = await once(child.stdout.setEncoding('utf8'), 'data');
  const stop = async () => {
    const exited = once(child, 'exit');
    child.stdin.end();
    await exited;
  };
  return { port: new URL(address).port, stop };
}
