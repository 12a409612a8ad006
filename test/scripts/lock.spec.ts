import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { Script, testDirectory } from './script';

/** Prints who has the lock, keeps it until it is spoken to, and says when it has let go. */
const HOLDER = `
  import { takeLock } from './scripts/processes/lock.mjs';
  const lock = takeLock(process.argv[1]);
  console.log(JSON.stringify(lock.holder ?? 'mine'));
  process.stdin.once('data', (word) => {
    if (String(word) === 'exit') process.exit(0);
    lock.release();
    console.log('"released"');
  });
`;
const WAITER = `
  import { waitForLock } from './scripts/processes/lock.mjs';
  const release = await waitForLock(process.argv[1], (holder) => console.log(holder));
  console.log('"mine"');
  release();
`;

/** Another process takes the stale lock over after this one has read it. */
const LATE = `
  import fs from 'node:fs';
  import { syncBuiltinESMExports } from 'node:module';
  import { takeLock } from './scripts/processes/lock.mjs';
  const [file, other] = process.argv.slice(1);
  const { readFileSync } = fs;
  let isRead = false;
  fs.readFileSync = (path, ...rest) => {
    const content = readFileSync(path, ...rest);
    if (path === file && !isRead) {
      isRead = true;
      fs.writeFileSync(file, other);
    }
    return content;
  };
  syncBuiltinESMExports();
  console.log(JSON.stringify(takeLock(file).holder ?? 'mine'));
`;

const directory = testDirectory();
const file = directory.path('start.lock');
afterEach(() => Script.endAll());
afterAll(() => directory.remove());

describe('the lock of a checkout', () => {
  it('names its holder to the others until it is released', async () => {
    const first = new Script(HOLDER, [file]);
    expect(await first.next()).toBe('mine');
    expect(readFileSync(file, 'utf8')).toBe(String(first.pid));
    expect(await new Script(HOLDER, [file]).next()).toBe(first.pid);
    first.say('release');
    expect(await first.next()).toBe('released');
    expect(existsSync(file)).toBe(false);
    expect(await new Script(HOLDER, [file]).next()).toBe('mine');
  });

  it('goes with a holder that just ends', async () => {
    const holder = new Script(HOLDER, [file]);
    await holder.next();
    holder.say('exit');
    expect(await holder.ended).toBe(0);
    expect(existsSync(file)).toBe(false);
  });

  it('is taken over from a holder that was killed', async () => {
    const killed = new Script(HOLDER, [file]);
    await killed.next();
    killed.kill();
    await killed.ended;
    expect(existsSync(file)).toBe(true);
    expect(await new Script(HOLDER, [file]).next()).toBe('mine');
  });

  it('is taken over from a process that merely got the same number', async () => {
    const stranger = spawn('sleep', ['60'], { cwd: '/', stdio: 'ignore' });
    await once(stranger, 'spawn');
    writeFileSync(file, String(stranger.pid));
    expect(await new Script(HOLDER, [file]).next()).toBe('mine');
    stranger.kill('SIGKILL');
  });

  it('stays with the first one that takes it over', async () => {
    const other = new Script(HOLDER, [directory.path('other.lock')]);
    await other.next();
    writeFileSync(file, '1');
    expect(await new Script(LATE, [file, String(other.pid)]).next()).toBe(other.pid);
    expect(readFileSync(file, 'utf8')).toBe(String(other.pid));
    rmSync(file);
  });

  it('is waited for, and its holder named', async () => {
    const holder = new Script(HOLDER, [file]);
    await holder.next();
    const waiter = new Script(WAITER, [file]);
    expect(await waiter.next()).toBe(holder.pid);
    holder.say('release');
    expect(await waiter.next()).toBe('mine');
    expect(await waiter.ended).toBe(0);
  });
});
