import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { ROOT } from '../../scripts/checkout/project.mjs';
import { cpuTable } from '../lib/findings.mjs';
import { FailedRun, measure } from '../lib/load.mjs';
import { spread, summaryOf, two, whole } from '../lib/statistics.mjs';

export const title = 'traces of notifications/add';

/** Most processor time of all processes of ours, broker and database, for an add, against that without traces. */
const MOST_COST = { '1 %': 0.03, '100 %': 0.2 };

/** @type {NodeJS.ProcessEnv} */
const OFF = {};

/** @typedef {import('../lib/load.mjs').Run} Run */

/** @param {import('../lib/laboratory.mjs').Laboratory} laboratory @param {import('../lib/modes.mjs').Mode} mode */
export async function run(laboratory, { rounds, seconds }) {
  const load = {
    operation: 'notifications/add',
    workload: { name: 'addNotification', recipients: 2 },
    // Each run has new processes. The time of the compiler at first is not part of the price.
    warmUpSeconds: 10 * laboratory.warmUpSeconds,
    seconds: 3 * seconds,
  };
  const receiver = spawn(process.execPath, [join(ROOT, 'bench/otlp-receiver.mjs')], { stdio: ['pipe', 'pipe', 'inherit'] });
  try {
    const [port] = await once(receiver.stdout, 'data');
    const url = `http://127.0.0.1:${String(port).trim()}`;
    const received = async () => Number(await (await fetch(url)).text());
    const on = { OTEL_EXPORTER_OTLP_ENDPOINT: url };
    /** @type {[string, NodeJS.ProcessEnv][]} */
    const kinds = [
      ['off', OFF],
      ['1 %', { ...on, OTEL_TRACES_SAMPLER: 'parentbased_traceidratio', OTEL_TRACES_SAMPLER_ARG: '0.01' }],
      ['100 %', on],
    ];
    /** @type {Record<string, Run[]>} */
    const runs = Object.fromEntries(kinds.map(([name]) => [name, []]));
    for (let round = 0; round < rounds; round++) {
      for (let turn = 0; turn < kinds.length; turn++) {
        const [name, settings] = kinds[(round + turn) % kinds.length];
        // One at a time: they would take commands from the same queue.
        const system = await laboratory.freshSystem('ours', { settings });
        const before = await received();
        runs[name].push(await measure(laboratory, system, load));
        const bytes = (await received()) - before;
        // The price of traces that nobody sends would be a good one.
        if (bytes > 0 !== (settings !== OFF)) throw new FailedRun(`${title}, ${name}: ${bytes} bytes of them arrived`);
      }
    }
    await laboratory.stopSystem('ours');
    const found = Object.fromEntries(Object.entries(runs).map(([name, all]) => [name, summaryOf(all)]));
    return {
      verdicts: Object.entries(MOST_COST).map(([name, most]) => verdict(name, most, runs[name], runs.off)),
      tables: [cpuTable(title, found)],
    };
  } finally {
    receiver.stdin.end();
  }
}

/** @param {string} name @param {number} most @param {Run[]} traced @param {Run[]} off */
function verdict(name, most, traced, off) {
  const [cost, base] = [traced, off].map((all) => median(all.map(processorOf)));
  return {
    what: `${title}, ${name} sampled: processor of all processes`,
    target: `at most ${most * 100} % more than without traces`,
    reached: `${two((cost / base - 1) * 100)} % (${whole(cost)} µs instead of ${whole(base)} µs)`,
    // Of the same round: what disturbs the machine for longer than a round disturbs both.
    spread: `${spread(
      traced.map((one, round) => processorOf(one) / processorOf(off[round]) - 1),
      (share) => share * 100,
      two,
    )} %`,
    met: cost / base - 1 <= most,
  };
}

/** @param {Run} run */
const processorOf = ({ cpu }) =>
  Object.entries(cpu).reduce((sum, [process, used]) => (process === 'client' ? sum : sum + used), 0);

/** @param {number[]} values */
const median = (values) => [...values].sort((a, b) => a - b)[values.length >> 1];
