import { readFileSync } from 'node:fs';

/** Files of the process that are no connections of clients: listening sockets, the broker, certificates, the log. */
const OTHER_FILES = 256;

/**
 * The most connections for which the process may open files. The system closes further ones unseen: they are in no metric, and no idle one gives its
 * place to them.
 *
 * @param wanted with enough files
 */
export function mostConnections(wanted: number): number {
  return Math.max(1, Math.min(wanted, openFiles() - OTHER_FILES));
}

/** Infinity: any number, or not on Linux. */
function openFiles(): number {
  try {
    return Number(/^Max open files +(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8'))?.[1] ?? Infinity);
  } catch {
    return Infinity;
  }
}
