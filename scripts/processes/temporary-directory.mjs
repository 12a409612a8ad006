import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startReaper } from './reaper.mjs';

/**
 * A directory that goes with us, whatever way we go.
 * @param {string} name
 * @returns {{ path: string, remove: () => void }}
 */
export function temporaryDirectory(name) {
  const path = mkdtempSync(join(tmpdir(), `${name}-`));
  // Later than the servers that write there: each has a reaper of its own.
  const reaper = startReaper('sleep 2; remove_directory "$DIRECTORY"', { DIRECTORY: path });
  const remove = () => {
    rmSync(path, { recursive: true, force: true });
    reaper.dismiss();
  };
  return { path, remove };
}
