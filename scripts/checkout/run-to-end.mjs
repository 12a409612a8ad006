import { reportFailure } from './progress.mjs';
import { endCommands } from '../processes/command.mjs';
import { watchParent } from '../processes/parent.mjs';

/**
 * Does the work of a script, and ends this process: with 1 after a failure, which is shown, or without its parent, and with 130 after a signal.
 * @param {() => number | Promise<number | void>} work may return another exit code than 0
 * @param {(code: number) => unknown} clean removes what the work has made, before this process ends
 */
export async function runToEnd(work, clean) {
  let leaving = false;
  /** @param {number} code */
  const leave = async (code) => {
    if (leaving) return;
    leaving = true;
    endCommands();
    try {
      await clean(code);
    } catch (error) {
      reportFailure(error);
      code ||= 1;
    }
    process.exit(code);
  };
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(name, () => void leave(130));
  watchParent(() => void leave(1));
  try {
    await leave((await work()) ?? 0);
  } catch (error) {
    if (!leaving) reportFailure(error);
    await leave(1);
  }
}
