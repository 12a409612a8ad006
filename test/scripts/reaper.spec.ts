import { existsSync } from 'node:fs';
import { appears, Script, testDirectory } from './script';

/** A group of two that hold the output of the program: one of them is deaf to SIGTERM. */
const STUBBORN = `spawn('sh', ['-c', 'trap "" TERM; sleep 60 & echo 1; wait'], { detached: true, stdio: ['ignore', 'inherit', 'ignore'] })`;
const IMPORTS = `
  import { spawn } from 'node:child_process';
  import { once } from 'node:events';
  import { childrenOf } from './scripts/processes/processes.mjs';
  import { startReaper } from './scripts/processes/reaper.mjs';
  const FILE = process.argv[1];
`;

const directory = testDirectory();
afterEach(() => Script.endAll());
afterAll(() => directory.remove());

describe('a reaper', () => {
  it('does what it is to do for a killed parent, and ends the whole group that it has left', async () => {
    const file = directory.path(`it's "the $rest"`);
    const parent = new Script(
      `${IMPORTS}
      const reaper = startReaper('touch "$FILE"; end_group TERM 1', { FILE });
      reaper.watch(${STUBBORN}.pid);
      console.log(2);
      setInterval(() => {}, 1000);`,
      [file],
    );
    // In either order: the group is there, and it is watched.
    expect([await parent.next(), await parent.next()].sort()).toEqual([1, 2]);
    parent.kill();
    await parent.allEnded;
    await appears(file);
  });

  it('leaves alone what it does not watch any more', async () => {
    const file = directory.path('forgotten');
    const parent = new Script(
      `${IMPORTS}
      const reaper = startReaper('end_group KILL 1; touch "$FILE"', { FILE });
      const child = ${STUBBORN};
      reaper.watch(child.pid);
      reaper.watch(0);
      console.log(child.pid);
      setInterval(() => {}, 1000);`,
      [file],
    );
    const printed = [await parent.next(), await parent.next()] as number[];
    parent.kill();
    await appears(file);
    const group = -Math.max(...printed);
    // Throws when there is nobody left.
    process.kill(group, 'SIGKILL');
    await parent.allEnded;
  });

  it('does nothing once it is dismissed', async () => {
    const file = directory.path('dismissed');
    const parent = new Script(
      `${IMPORTS}
      const reaper = startReaper('touch "$FILE"', { FILE });
      reaper.dismiss();
      const timer = setInterval(() => {
        if (childrenOf(process.pid).length > 0) return;
        clearInterval(timer);
        console.log('"gone"');
      }, 10);`,
      [file],
    );
    expect(await parent.next()).toBe('gone');
    expect(await parent.ended).toBe(0);
    expect(existsSync(file)).toBe(false);
  });
});
