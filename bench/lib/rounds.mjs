import { report } from '../../scripts/lib/progress.mjs';
import { measure } from './load.mjs';
import { summary } from './statistics.mjs';

/**
 * Measures the same load on several systems, in rounds and each time in another order: what the machine does besides meets all of them.
 * @param {import('./laboratory.mjs').Laboratory} laboratory
 * @param {string[]} names of systems
 * @param {(name: string) => import('./load.mjs').Load} loadOf
 * @param {{ rounds: number, main?: string }} options `main`: the figure whose spread is told
 * @returns {Promise<Record<string, ReturnType<typeof summary>>>} by system
 */
export async function interleaved(laboratory, names, loadOf, { rounds, main = 'perSecond' }) {
  const systems = [];
  for (const name of names) systems.push(await laboratory.system(name));
  const runs = Object.fromEntries(names.map((name) => [name, []]));
  for (let round = 0; round < rounds; round++) {
    for (let turn = 0; turn < systems.length; turn++) {
      const system = systems[(round + turn) % systems.length];
      runs[system.name].push(await measure(laboratory, system, loadOf(system.name, round)));
    }
    const line = names.map((name) => `${name} ${runs[name].at(-1)[main].toFixed(main === 'perSecond' ? 0 : 2)}`);
    report(`  round ${round + 1} of ${rounds}: ${line.join(', ')}`);
  }
  return Object.fromEntries(names.map((name) => [name, summary(runs[name], main)]));
}
