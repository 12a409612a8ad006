import { report } from '../../scripts/checkout/progress.mjs';
import { measure } from './load.mjs';
import { summaryOf } from './statistics.mjs';

/**
 * Measures the same load on several systems, in rounds and each time in another order: what the machine does besides meets all of them.
 * @template {import('./laboratory.mjs').SystemName} N
 * @param {import('./laboratory.mjs').Laboratory} laboratory
 * @param {N[]} names of systems
 * @param {number} rounds
 * @param {(name: N, round: number) => import('./load.mjs').Load} loadOf
 * @returns {Promise<Record<N, import('./statistics.mjs').Summary>>} by system
 */
export async function interleaved(laboratory, names, rounds, loadOf) {
  for (const name of names) await laboratory.system(name); // all run before the first is measured
  /** @type {Record<string, import('./load.mjs').Run[]>} */
  const runs = Object.fromEntries(names.map((name) => [name, []]));
  for (let round = 0; round < rounds; round++) {
    for (let turn = 0; turn < names.length; turn++) {
      const name = names[(round + turn) % names.length];
      runs[name].push(await measure(laboratory, await laboratory.system(name), loadOf(name, round)));
    }
    const found = names.map((name) => {
      const { perSecond, p50 } = runs[name][round];
      return `${name} ${perSecond.toFixed(0)}/s, p50 ${p50.toFixed(2)} ms`;
    });
    report(`    round ${round + 1} of ${rounds}: ${found.join('; ')}`);
  }
  const summaries = Object.fromEntries(names.map((name) => [name, summaryOf(runs[name])]));
  return /** @type {Record<N, import('./statistics.mjs').Summary>} */ (summaries);
}
