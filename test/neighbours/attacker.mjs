// One attacker in its own process with low priority, because a real attacker has its own machine. A child of row.ts: it gets { name, target },
// prepares, gets 'attack' and 'stop', and reports the offered load.
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
