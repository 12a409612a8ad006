import type { AuditLine } from '@app/rabbitmq-admin/dead-letters/audit';
import type { NeighbourSystem } from './neighbour-system';

const TOOL = 'dist/libs/rabbitmq-admin/src/dead-letters/dead-letters.main.js';
/** The rest of a stub is gone, and no service vouches for a letter that the operator made. */
const MAY_STAY = /^(only the first \d+ of its|its origin is unknown)/;
/** All that the tool says beside its audit lines when it keeps such letters. Its exit code is 1 then, as after a failure. */
const DONE_BUT_FOR_KEPT = /^\d+ replayed, \d+ kept\.$|^\d+ kept, \d+ replayed\.$/;

interface Ended {
  stdout: string;
  stderr: string;
}

/**
 * Replays all dead letters, like an operator.
 *
 * @throws Error when nothing was replayed, or the tool failed, or it kept a letter that it can replay
 */
export async function replayLetters(system: NeighbourSystem): Promise<void> {
  await system.tool(TOOL, 'list', '--json');
  const { stdout, stderr } = await system.tool(TOOL, 'replay', '--all', '--rate', '2000').then(
    (stdout) => ({ stdout, stderr: undefined }),
    (error: unknown) => error as Ended,
  );
  if (stderr !== undefined && !DONE_BUT_FOR_KEPT.test(stderr.trim())) throw new Error(`The replay failed: ${stderr.trim()}`);
  const lines = stdout
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line) as AuditLine);
  const kept = lines.find(({ outcome, reason = '' }) => outcome !== 'replayed' && !MAY_STAY.test(reason));
  if (kept) throw new Error(`A letter was not replayed: ${JSON.stringify(kept)}`);
  if (!lines.some(({ outcome }) => outcome === 'replayed')) throw new Error('No letter was replayed.');
}
