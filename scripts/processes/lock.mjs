import { linkSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { commandLine } from './processes.mjs';

/**
 * Takes a lock file that names its holder. One left by a crash is taken over.
 * @param {string} file
 * @returns {{ release: () => void, holder?: undefined } | { holder: number, release?: undefined }}
 */
export function takeLock(file) {
  mkdirSync(dirname(file), { recursive: true });
  // Written first and linked then: nobody ever sees a lock without its holder.
  const mine = `${file}.${process.pid}`;
  writeFileSync(mine, String(process.pid), { mode: 0o600 });
  try {
    for (let attempt = 0; attempt < 3; attempt++) {
      try {
        linkSync(mine, file);
        const release = () => rmSync(file, { force: true });
        process.once('exit', release);
        return {
          release: () => {
            process.off('exit', release);
            release();
          },
        };
      } catch (error) {
        if (error.code !== 'EEXIST') throw error;
      }
      const holder = holderOf(file);
      if (holder) return { holder };
      removeStale(file, `${mine}.stale`);
    }
  } finally {
    rmSync(mine, { force: true });
  }
  throw new Error(`${file} cannot be locked; delete it`);
}

/**
 * Removes a lock without a holder. Somebody else may have done so since, and have it now: then it is put back.
 * @param {string} file
 * @param {string} aside
 */
function removeStale(file, aside) {
  try {
    renameSync(file, aside);
  } catch (error) {
    if (error.code === 'ENOENT') return;
    throw error;
  }
  if (holderOf(aside)) renameSync(aside, file);
  else rmSync(aside);
}

/**
 * Takes the lock, waiting for its holder to be done.
 * @param {string} file
 * @param {(holder: number) => void} onWait
 */
export async function waitForLock(file, onWait) {
  for (let isNamed = false; ; await sleep(250)) {
    const lock = takeLock(file);
    if (lock.release) return lock.release;
    if (!isNamed) onWait(lock.holder);
    isNamed = true;
  }
}

// A process id may belong to someone else by now: ours are Node processes that run one of these scripts.
/** @param {string} file */
function holderOf(file) {
  try {
    const pid = Number(readFileSync(file, 'utf8'));
    return pid > 1 && pid !== process.pid && commandLine(pid).includes('scripts/') ? pid : undefined;
  } catch {
    return undefined;
  }
}
