import { join } from 'node:path';
import { endCommands } from '../processes/command.mjs';
import { watchParent } from '../processes/parent.mjs';
import { temporaryDirectory } from '../processes/temporary-directory.mjs';
import { runJest } from './jest.mjs';
import { checkMachine } from './machine.mjs';
import { prepare } from './prepare.mjs';
import { report, reportFailure } from './progress.mjs';

/**
 * Runs the tests of a project of Jest that has a command of its own, and ends this process: 0, or 1 after a failure.
 * @param {object} suite
 * @param {string} suite.project
 * @param {() => Promise<unknown>} [suite.before] after the build
 * @param {(directory: string) => NodeJS.ProcessEnv} [suite.env] of the tests, given a folder that goes with this process
 * @param {(directory: string) => void} [suite.after] also after failed tests
 */
export async function runSuite({ project, before, env, after }) {
  const directory = temporaryDirectory(project);
  let leaving = false;
  /** @param {number} code */
  const leave = (code) => {
    if (leaving) return;
    leaving = true;
    endCommands();
    directory.remove();
    process.exit(code);
  };
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(name, () => leave(130));
  watchParent(() => leave(1));
  try {
    checkMachine();
    await prepare();
    await before?.();
    const { passed, failed } = await runJest(
      ['--selectProjects', project, '--runInBand'],
      env?.(directory.path) ?? {},
      join(directory.path, 'report.json'),
    );
    after?.(directory.path);
    report(`${passed} passed, ${failed} failed`);
    leave(failed > 0 ? 1 : 0);
  } catch (error) {
    if (!leaving) reportFailure(error);
    leave(1);
  }
}
