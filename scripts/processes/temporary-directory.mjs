import { accessSync, constants, mkdtempSync, rmSync, statfsSync } from 'node:fs';
import { freemem, tmpdir } from 'node:os';
import { join } from 'node:path';
import { startReaper } from './reaper.mjs';

/** Where Linux has a file system in memory. */
const MEMORY = '/dev/shm';
/** The servers of a whole npm test leave 1 GiB there; containers often have 64 MiB of it only. */
const ROOM_BYTES = 4 * 1024 ** 3;

/**
 * A directory that goes with us, whatever way we go.
 * @param {string} name
 * @param {{ inMemory?: boolean }} [where] in memory when there is room for it: nothing has to reach a disk, which takes longest of all
 * @returns {{ path: string, remove: () => void }}
 */
export function temporaryDirectory(name, { inMemory = false } = {}) {
  const path = mkdtempSync(join(inMemory && roomInMemory() ? MEMORY : tmpdir(), `${name}-`));
  // Later than the servers that write there: each has a reaper of its own.
  const reaper = startReaper('sleep 2; remove_directory "$DIRECTORY"', { DIRECTORY: path });
  const remove = () => {
    rmSync(path, { recursive: true, force: true });
    reaper.dismiss();
  };
  return { path, remove };
}

function roomInMemory() {
  try {
    accessSync(MEMORY, constants.W_OK);
    const { bavail, bsize } = statfsSync(MEMORY);
    return Math.min(bavail * bsize, freemem()) > ROOM_BYTES;
  } catch {
    return false;
  }
}
