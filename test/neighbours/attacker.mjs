// One attacker in a process of its own, which takes what the others leave of the processors: a real one has its own machine. A child of
// row.ts: it is sent { name, target }, prepares, and is told 'attack' and 'stop'; then it says what it offered.
import { constants, setPriority } from 'node:os';
import { ATTACKS } from './attacks/all.mjs';

/** @typedef {import('./neighbour-system.ts').Target} Target */

setPriority(constants.priority.PRIORITY_BELOW_NORMAL);
process.on('disconnect', () => process.exit(1));
process.once('message', (/** @type {{ name: string, target: Target }} */ { name, target }) => void run(name, target));

/** @param {string} name @param {Target} target */
async function run(name, target) {
  const attack = ATTACKS.find((one) => one.name === name);
  if (!attack) throw new Error(`There is no attack "${name}".`);
  await attack.prepare?.(target);
  /** @type {Awaited<ReturnType<typeof attack.start>> | undefined} */
  let running;
  process.on('message', async (order) => {
    if (order === 'attack') {
      running = await attack.start(target);
      process.send?.({ attack: true });
    }
    if (order === 'stop') process.send?.({ done: await running?.stop() }, () => process.exit(0));
  });
  process.send?.({ started: true });
}
